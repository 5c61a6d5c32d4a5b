"""Run by Python as it starts, where `PYTHONPATH` says so: the program waits where a test wants it to.

It stands before what the environment may have of that name.
"""

import os

import moments

if root := os.environ.get("SYNTHMAP_TEST_ROOT"):
    moments.wait_where_asked(root)
