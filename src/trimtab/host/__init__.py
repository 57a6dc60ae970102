"""Shares a live session between clients, routes its questions, and folds what to display."""
