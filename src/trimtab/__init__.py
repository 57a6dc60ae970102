"""Trimtab: the open agent runtime."""
