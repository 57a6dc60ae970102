"""Knows which checks (commands such as the tests) passed since files last changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

EndState = Literal["green", "red", "unknown"]


class Checks:
    """The outcome of each check, as of the last time the agent ran it.

    `changes` returns a number that grows with every change of files. An outcome counts until the
    files change again; what a check itself changes, such as a cache, does not count.
    """

    def __init__(self, commands: Sequence[str], changes: Callable[[], int]) -> None:
        self.commands = tuple(commands)
        self._changes = changes
        self._outcomes: dict[str, tuple[bool, int]] = {}

    def record(self, command: str, exit_code: int) -> None:
        """Record that a command has ended."""
        for check in self.commands:
            if command.strip() == check.strip():
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
