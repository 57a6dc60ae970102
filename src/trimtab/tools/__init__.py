"""The built-in tools: a folder for each, with its code and its description in Markdown."""
