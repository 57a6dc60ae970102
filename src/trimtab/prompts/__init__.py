"""Builds the texts a model reads: the system prompt, and the context added to a person's prompt."""
