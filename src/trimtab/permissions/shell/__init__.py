"""What a shell command would do, found by reading it: programs, paths, addresses, hazards."""
