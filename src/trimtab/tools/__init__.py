"""What a model can do: one folder per tool, with its description in Markdown beside the code."""
