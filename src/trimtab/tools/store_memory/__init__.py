"""Keeps a fact for later sessions."""
