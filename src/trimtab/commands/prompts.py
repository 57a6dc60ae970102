"""Slash commands that stand for a prompt: `/review`, `/init` and the like."""

import os
from importlib.resources import files

from trimtab.contracts.errors import UsageError

INSTRUCTION_FILES = ("AGENTS.md", os.path.join(".github", "copilot-instructions.md"), "CLAUDE.md")
"""The files that `/init` improves, the first that exists; if none does, it writes the second."""
NEEDS_WORDS = {"research": "/research QUESTION"}


def expand(name: str, words: str, root: str) -> str:
    """Return the prompt that a command with these words stands for. Raises `UsageError`."""
    if name in NEEDS_WORDS and not words:
        raise UsageError(f"There is no question; write {NEEDS_WORDS[name]}.")
    text = files(__package__).joinpath("texts", f"{name}.md").read_text("utf-8").strip()
    if "{{file}}" in text:
        text = text.replace("{{file}}", find_instructions(root))
    return f"{text}\n\nThe person adds: {words}" if words else text


def find_instructions(root: str) -> str:
    """Return the instruction file of a repository, or the one to write."""
    found = (name for name in INSTRUCTION_FILES if os.path.isfile(os.path.join(root, name)))
    return next(found, INSTRUCTION_FILES[1])
