"""Tests that kill at a moment are worth something only if the process is still there."""

import os
import subprocess
import sys

import pytest
from moments import held_at, waiting_at
from waiting import wait_for

BRIEFLY = "import pathlib, sys; place = pathlib.Path(sys.argv[1]); place.touch(); place.unlink()"


def test_a_process_waits_where_it_is_asked_to_and_goes_on_after(tmp_path):
    sign = tmp_path / "sign"
    with held_at(tmp_path, "sign"):
        process = subprocess.Popen([sys.executable, "-c", BRIEFLY, sign], env=os.environ | waiting_at(tmp_path))
        wait_for(lambda: sign.exists() or process.poll() is not None)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert sign.exists()
    assert process.wait() == 0
    assert not sign.exists()
