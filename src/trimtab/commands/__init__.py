"""Slash commands: their table, and what each does to the session it is typed in."""
