"""What a machine lacks is a skip, and a failure where all must be tested."""

import shutil

import browser
import pytest
from missing import ALL


@pytest.mark.parametrize(("value", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_a_missing_browser_is_told(monkeypatch, value, outcome):
    monkeypatch.setenv(ALL, value)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(outcome, match="is not installed"), browser.chromium():
        pass
