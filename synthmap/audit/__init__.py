"""Audits: the code that plans and draws, held against what it promises. Reads no data."""
