"""Reads the facts kept by earlier sessions."""
