"""Hosting a session: who takes part in it, who is asked what, and what a face shows of it."""
