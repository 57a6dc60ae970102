"""Changes several files at once by a patch."""
