"""Explains decisions and suggests rules, for `trimtab permissions`."""
