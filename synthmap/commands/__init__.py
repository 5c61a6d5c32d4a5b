"""Commands around the service, one file a group; `synthmap.cli` puts them together."""
