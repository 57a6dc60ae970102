"""Sends input to a background command."""
