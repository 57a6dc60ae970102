"""Runtimes: other agents' programs that answer the prompts of a session."""
