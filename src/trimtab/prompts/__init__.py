"""The system prompt and the text around a user's words, in named parts."""
