"""Wait for something to be so, without a busy loop."""

import time

PATIENCE = 240.0  # seconds that anything may take, on a busy machine


def wait_for(seen, patience=PATIENCE):
    """Return the first true value of `seen`, asked often."""
    end = time.monotonic() + patience
    while not (found := seen()):
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.002)
    return found
