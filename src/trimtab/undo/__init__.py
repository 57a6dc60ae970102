"""Undo: records every change to files, and takes changes back."""
