"""Puts together what a script would do."""
