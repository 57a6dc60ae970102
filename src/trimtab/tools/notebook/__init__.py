"""Changes files in place."""
