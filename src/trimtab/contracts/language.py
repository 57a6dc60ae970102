"""Language servers as the `lsp` tool and the agent see them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class LanguageProblem(Exception):
    """A language server cannot answer; the message is for the model and says what to do."""


class LanguageServer(msgspec.Struct, frozen=True, kw_only=True):
    """A language server that could be started, and the files it is for."""

    name: str
    argv: tuple[str, ...]
    languages: Mapping[str, str]
    """Suffix of a file, such as `.py` → the language's id, such as `python`."""
    source: str
    """The file that configures it, or the folder its program was found in."""
    env: Mapping[str, str] = {}
    options: Any = None
    """The server's own initialization options."""
    settings: Mapping[str, Any] = {}
    fields: Mapping[str, str] = {}
    """The fields of its file that configure it, and whether each is used."""


class LanguageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question about code. `line` counts from 1; `symbol` is a name in that line or file."""

    action: str
    path: str = ""
    line: int | None = None
    symbol: str = ""
    new_name: str = ""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A file as a language server wants it changed: its bytes before and after."""

    path: str
    before: bytes
    after: bytes


class LanguagePort(Protocol):
    """The language servers of a session. They are started when the first question needs them."""

    planned: dict[str, Sequence[FileEdit]]
    """The edits of a rename, by the id of the call that makes it."""

    async def answer(self, query: LanguageQuery) -> str:
        """Return the answer as text. Raises `LanguageProblem`."""
        ...

    async def plan_rename(self, query: LanguageQuery) -> Sequence[FileEdit]:
        """Return the files that a new name changes, without changing them. Raises
        `LanguageProblem`."""
        ...
