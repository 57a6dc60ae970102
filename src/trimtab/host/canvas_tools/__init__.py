"""Lets the model open canvases and work with them."""
