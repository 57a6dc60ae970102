"""Knows which checks (commands such as the tests) passed since files last changed."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

EndState = Literal["green", "red", "unknown"]


class Checks:
    """The outcome of each check, as of the last time the agent ran it.

    `changes` returns a number that grows with every change of files. An outcome counts until the
    files change again; what a check itself changes, such as a cache, does not count. A check is
    recognised in any spacing, and after a `cd` to `root`, the folder of the session.
    """

    def __init__(
        self, commands: Sequence[str], changes: Callable[[], int], root: str = os.curdir
    ) -> None:
        self.commands = tuple(commands)
        self._changes = changes
        self._root = root
        self._outcomes: dict[str, tuple[bool, int]] = {}

    def record(self, command: str, exit_code: int) -> None:
        """Record that a command has ended."""
        words = drop_cd(split_words(command), self._root)
        for check in self.commands:
            if words == split_words(check):
                self._outcomes[check] = (exit_code == 0, self._changes())

    @property
    def outcomes(self) -> Mapping[str, bool | None]:
        """True for each check that passed after the last change; None if it did not run since."""
        now = self._changes()
        found = {check: self._outcomes.get(check) for check in self.commands}
        return {
            check: outcome[0] if outcome and outcome[1] == now else None
            for check, outcome in found.items()
        }

    @property
    def end_state(self) -> EndState:
        """`green` if all checks passed, `red` if one failed, else `unknown`."""
        outcomes = self.outcomes.values()
        if any(outcome is False for outcome in outcomes):
            return "red"
        return "green" if all(outcomes) else "unknown"


def split_words(command: str) -> list[str]:
    """Return the words and operators of a command, with their quotes, whatever the spacing."""
    lexer = shlex.shlex(command.strip(), posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote: only the same text is the same command
        return [command.strip()]


def drop_cd(words: list[str], root: str) -> list[str]:
    """Return the words after `cd FOLDER &&`, if that leads to the root itself."""
    if len(words) < 4 or words[0] != "cd" or words[2] != "&&":
        return words
    folder = os.path.join(root, words[1].strip("\"'"))
    return words[3:] if os.path.realpath(folder) == os.path.realpath(root) else words
