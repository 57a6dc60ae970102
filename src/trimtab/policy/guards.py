"""Refuses settings files whose rules or limits cannot be read: a typo must not open a door."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, blank_out
from trimtab.config.paths import Home
from trimtab.config.settings import Settings, has_type, known_settings, parse_settings
from trimtab.contracts.errors import ConfigurationError

GUARDS = ("permissions", "contentExclusion", "allowedUrls", "deniedUrls", "sandbox", "limits")
"""The settings that keep something from happening."""
_NAMED = re.compile("|".join((*GUARDS, "den[iy]", "disallow")).encode(), re.IGNORECASE)
_RULES = ("allow", "ask", "deny")
_DENIES = re.compile("(?:denn?[iy]|disallow|forbid|block|exclude)", re.IGNORECASE)
_ADDRESSES = re.compile("url|uri|domain|host", re.IGNORECASE)
_SIMILAR = 0.8


def read_guarded(home: Home, file: str) -> dict[str, Any]:
    """Return the settings in a file; empty without one. Raises `ConfigurationError`.

    A broken file that names none of the guards is replaced by its last good copy, whose rules then
    hold. `Settings` reports the problem.
    """
    try:
        data = read_regular(file)
    except OSError as error:
        if not os.path.isfile(file):  # nothing is written there
            return {}
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"{file} cannot be read ({reason}), so its rules are not known; make it readable."
        ) from None
    try:
        values = parse_settings(data)
    except JsonProblem as error:
        if _NAMED.search(data.replace(b"\0", b"")) is None:  # also in UTF-16
            return Settings(home).load(file) or {}
        raise ConfigurationError(
            f"{file}:{error.line} is not valid ({error}), so its rules are not known; correct it."
        ) from None
    _check(values, data, file)
    return values


def _check(values: Mapping[str, Any], data: bytes, file: str) -> None:
    anywhere, user = known_settings()
    known = {**anywhere, **user}
    for key, value in values.items():
        if key in GUARDS and not has_type(known[key], value):
            kind = "an object" if known[key] == "object" else "a list of texts"
            raise ConfigurationError(f"{file}: `{key}` is not {kind}; write one.")
        if key not in known and (intended := find_intended(key, value)):
            raise ConfigurationError(f"{file}: there is no setting {key}; did you mean {intended}?")
    for key in find_repeated(data):
        raise ConfigurationError(f"{file}: {key} is given twice; put both into one.")


def find_intended(key: str, value: Any = None) -> str:
    """Return the guard that an unknown key was probably meant for, or an empty text."""
    from difflib import SequenceMatcher

    if isinstance(value, dict) and any(name.strip().lower() in _RULES for name in value):
        return "permissions"
    for guard in GUARDS:
        if SequenceMatcher(None, key.lower(), guard.lower()).ratio() >= _SIMILAR:
            return guard
    if key in ("allow", "ask"):
        return f"permissions.{key}"
    if _DENIES.match(key):
        return "deniedUrls" if _ADDRESSES.search(key) else "permissions.deny"
    return ""


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written: a key may be in it twice."""


def find_repeated(data: bytes) -> Iterator[str]:
    """Yield guards, and keys in them, that are given twice: of these only the last would count."""
    if _NAMED.search(data) is None:
        return
    import json

    written = json.loads(blank_out(data.decode("utf-8-sig")), object_pairs_hook=_Pairs)
    names = [key for key, _ in written if key in GUARDS]
    for key, value in written:
        guard, _, field = key.partition(".")
        if guard in GUARDS:
            fields = (name for name, _ in value) if isinstance(value, _Pairs) else ()
            names += [f"{guard}.{name}" for name in ((field,) if field else fields)]
    yield from (name for name in dict.fromkeys(names) if names.count(name) > 1)
