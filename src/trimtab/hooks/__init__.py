"""Hooks: other people's programs and clients, called at fixed points of a session."""
