"""Alembic's scripts, run by `open_catalog`; there is no way down: an older synthmap refuses a newer catalog."""
