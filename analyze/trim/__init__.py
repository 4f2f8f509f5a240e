"""A smaller trace from a trace: chosen steps with all that belongs to them, names replaced."""
