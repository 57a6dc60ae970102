"""Finds keys of a settings file that are meant to hold rules and would be passed over in silence.

A typo must not open a door: each is an error at the start.
"""

import re
from collections.abc import Mapping
from typing import Any

from trimtab.config.jsonc import blank_out
from trimtab.config.settings import known_settings
from trimtab.contracts.errors import ConfigurationError

_VERBS = ("allow", "ask", "deny")
_GUARDED = (*_VERBS, "permissions", "allowedUrls", "deniedUrls", "contentExclusion", "sandbox")
"""Keys that decide what may happen."""
_LIKELY = re.compile(r"perm|allow|den|ask|exclu|sand", re.IGNORECASE)
"""Occurs in every key that may be meant to be one of these."""
_FOR_RULES = re.compile(
    r"(?:perm\w*?)?(?:(allow)(?:ed)?|(ask)|(?:deny|denny|denied|disallow(?:ed)?))"
    r"(?:tools?|rules?|shell|commands?|list)?"
)
_FOR_ADDRESSES = re.compile(
    r"(?:(allow)(?:ed)?|deny|denied|disallow(?:ed)?)(?:ur[il]|domain|host)s?"
)


def may_hold_rules(data: bytes) -> bool:
    """Return True if a file that cannot be read seems to have rules in it."""
    plain = data.replace(b"\0", b"")
    return any(key.encode() in plain for key in _GUARDED[len(_VERBS) :])


def check_repeated(data: bytes, file: str) -> None:
    """Raise `ConfigurationError` if a key is there twice: only its last value would count."""
    keys = re.findall(rb'"(%s)"\s*:' % "|".join(_GUARDED).encode(), data)
    if len(keys) == len(set(keys)):
        return
    import json

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs if name in _GUARDED]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"{file}: `{name}` stands twice in the same object, and only the last would "
                    "count; put everything into one."
                )
        return dict(pairs)

    text = data.decode("utf-8-sig", "replace")
    json.loads(blank_out(text), object_pairs_hook=refuse_repeated, strict=False)


def check_names(content: Mapping[str, Any], file: str) -> None:
    """Raise `ConfigurationError` for a key that is almost one that decides what may happen."""
    for key in content:
        if key in _GUARDED[len(_VERBS) :] or not _LIKELY.search(key):
            continue
        known = {name for group in known_settings() for name in group}
        if key in known or any(name.startswith(f"{key}.") for name in known):
            continue
        if meant := _find_meant(re.sub(r"[^a-z]", "", key.lower())):
            raise ConfigurationError(f"{file}: there is no setting {key}; write {meant}.")


def _find_meant(name: str) -> str:
    """Return the setting that a name stands for, as it is written, or an empty text."""
    if match := _FOR_RULES.fullmatch(name):
        verb = match[1] or match[2] or "deny"
        return f'"permissions": {{"{verb}": […]}}'
    if match := _FOR_ADDRESSES.fullmatch(name):
        return "allowedUrls" if match[1] else "deniedUrls"
    from difflib import get_close_matches

    guarded = {key.lower(): key for key in _GUARDED}
    close = get_close_matches(name, guarded, 1, cutoff=0.85)
    return guarded[close[0]] if close else ""
