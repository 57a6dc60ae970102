"""Asks the person a question."""
