"""Guesses: what somebody expects of a trace before looking, and how a trace compares with it."""
