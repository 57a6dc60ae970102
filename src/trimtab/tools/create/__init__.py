"""Creates files."""
