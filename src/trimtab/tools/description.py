"""Loads the description of a tool for the model."""

import os


def describe(tool_file: str) -> str:
    """Return the text of `description.md` in the folder of a tool's module."""
    with open(os.path.join(os.path.dirname(tool_file), "description.md"), encoding="utf-8") as file:
        return file.read().strip()
