"""Searches the web."""
