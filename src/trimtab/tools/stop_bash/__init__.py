"""Stops a background command."""
