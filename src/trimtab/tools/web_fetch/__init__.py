"""Reads pages of the web."""
