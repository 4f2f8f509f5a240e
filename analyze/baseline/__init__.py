"""Findings that are known: a file of them, and what is new, worse or gone beside it."""
