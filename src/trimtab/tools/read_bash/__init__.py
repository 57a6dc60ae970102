"""Reads what a background command printed."""
