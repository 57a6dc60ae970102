"""Variables that decide what programs load, run or read before they do what they were told."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

PATH_ITSELF = "\0"
"""Stands in a value for what PATH had before. No text of a script has that character."""
_PROGRAM_FOLDERS = re.compile(
    r"/(?:usr/|usr/local/|opt/homebrew/|opt/local/|snap/)?s?bin|/usr/local/go/bin"
    r"|/(?:opt/homebrew|usr/local)/opt/[\w@.+-]+/(?:libexec/)?bin"
    r"|~/(?:\.(?:cargo|local|bun|deno|volta|pyenv|rbenv|asdf|fnm|dotnet/tools)/(?:bin|shims)"
    r"|\.nvm/versions/node/v[\d.]+/bin|\.local/share/(?:mise|asdf)/shims|go/bin)"
)
"""Folders in which programs are installed, with `~` for the home."""


def is_program_folder(part: str, home: str) -> bool:
    """Return True for a part of PATH that only whoever installs programs writes to."""
    if part == PATH_ITSELF:
        return True
    short = f"~{part.removeprefix(home)}" if home and part.startswith(f"{home}/") else part
    return part[:1] == "/" and _PROGRAM_FOLDERS.fullmatch(short) is not None


class _Table(msgspec.Struct):
    hazards: str
    harmless: str
    harmless_values: dict[str, str]


@lru_cache(1)
def _table() -> _Table:
    path = os.path.join(os.path.dirname(__file__), "tables", "variables.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=_Table)


_USUAL = {
    "NVM_DIR": ".nvm",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "ASDF_DIR": ".asdf",
    "SDKMAN_DIR": ".sdkman",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "BUN_INSTALL": ".bun",
    "DENO_INSTALL": ".deno",
    "VOLTA_HOME": ".volta",
}
"""Variables that name where a tool is installed, and where it is without them, in the home."""


def is_usual(name: str, values: Sequence[str] | None, home: str) -> bool:
    """Return True if a variable is set to what its tool takes without it, and to nothing else."""
    usual = f"{home}/{_USUAL[name]}" if home and name in _USUAL else ""
    return bool(values) and usual != "" and set(values or ()) == {usual}


@lru_cache(512)
def is_hazardous(name: str, value: str | None) -> bool:
    """Return True if setting a variable (to None: a value that is not known) may run something."""
    table = _table()
    upper = name.upper() if name.lower().startswith("npm_config_") else name
    if not re.fullmatch(table.hazards, upper) or re.fullmatch(table.harmless, upper):
        return False
    if value is None:
        return True
    return not any(
        re.fullmatch(names, upper) and re.fullmatch(values, value)
        for names, values in table.harmless_values.items()
    )
