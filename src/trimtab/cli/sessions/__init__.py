"""What `trimtab sessions` does and how it shows it."""
