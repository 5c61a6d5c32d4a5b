"""The published artefact: write, open, verify."""
