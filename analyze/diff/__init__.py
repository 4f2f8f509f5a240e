"""What changed between two traces: alike work aligned, amounts judged against their spread."""
