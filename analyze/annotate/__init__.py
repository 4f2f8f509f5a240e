"""Findings drawn into a copy of their trace, for trace viewers."""
