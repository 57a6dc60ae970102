"""Searches in files with ripgrep."""
