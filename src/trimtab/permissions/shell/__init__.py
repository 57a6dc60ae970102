"""Reads shell commands to find what they would do: programs, paths, addresses, hazards."""
