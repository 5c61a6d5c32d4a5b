"""One file a group of routes; each has a ``router``, and ``app.py`` puts them together."""
