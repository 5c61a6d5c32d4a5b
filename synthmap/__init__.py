"""Publish who commutes from where to where without giving anyone away."""

__version__ = "0.1.0"
