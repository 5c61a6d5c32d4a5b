"""What is read from published releases: opening them, their zones, OD queries, layers, tiles, files to download."""
