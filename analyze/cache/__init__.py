"""Decoded traces, kept between runs so that a trace is read faster the second time."""
