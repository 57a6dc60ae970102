"""Finds files by name."""
