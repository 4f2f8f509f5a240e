"""The result objects and one writer per format."""
