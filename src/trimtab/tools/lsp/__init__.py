"""Asks language servers."""
