"""Runs the code people hang on fixed points of a session: command, http and prompt hooks."""
