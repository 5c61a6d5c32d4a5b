"""Measures of two origin-destination tables: pure functions of arrays, and readers of published releases."""
