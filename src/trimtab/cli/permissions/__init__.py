"""What `trimtab permissions` does: explain decisions, neutralise text, suggest rules."""
