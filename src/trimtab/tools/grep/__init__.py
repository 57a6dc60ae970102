"""Searches in the contents of files."""
