"""From the bytes of a file to event columns: open, decompress, split, decode, repair."""
