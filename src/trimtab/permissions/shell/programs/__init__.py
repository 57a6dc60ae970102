"""Knows programs: their options, what they start, read, write and destroy."""
