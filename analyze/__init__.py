"""Deterministic findings from PyTorch-profiler traces."""
