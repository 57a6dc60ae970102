"""What is said about one flag."""

from typing import Literal

import msgspec

Kind = Literal["switch", "value", "optional", "list", "number", "money", "duration"]


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag. `optional` takes a value only as `--flag=value`; `list` may be repeated.

    `refused` says why a known flag of Copilot CLI cannot be used; `ignored` why it has no effect
    (that is then also said in an event).
    """

    names: tuple[str, ...]
    group: str
    help: str
    kind: Kind = "switch"
    choices: tuple[str, ...] = ()
    metavar: str = ""
    hidden: bool = False
    refused: str = ""
    ignored: str = ""

    @property
    def key(self) -> str:
        return self.names[-1].lstrip("-").replace("-", "_")
