"""Assembles sessions from the other packages and lets transports drive them."""
