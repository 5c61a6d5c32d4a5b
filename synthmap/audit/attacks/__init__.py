"""Attacks of the literature, as functions of a table of flows: an unprotected one, a release, many draws of one.

A table of flows has the columns ``origin``, ``destination`` and ``count``, as releases have; one that holds many draws
has the number of each in a column ``draw`` too. No attack asks how a table was made.
"""
