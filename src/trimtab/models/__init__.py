"""Chooses the model of a session and its service, and lists and probes models."""
