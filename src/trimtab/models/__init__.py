"""Models: which model a session uses, through which service, and what it costs."""
