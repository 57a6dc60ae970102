"""Shows files, directories and images."""
