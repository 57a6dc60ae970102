"""Loads the prose a model reads about a tool."""

import os


def describe(tool_file: str) -> str:
    """The text of `description.md` beside a tool's module."""
    with open(os.path.join(os.path.dirname(tool_file), "description.md"), encoding="utf-8") as file:
        return file.read().strip()
