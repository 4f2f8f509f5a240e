"""What a kernel's name and launch tell: family, precision, matrix units, occupancy."""
