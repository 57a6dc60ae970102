"""Compares model names, and suggests names for a mistyped one."""

import re
from collections.abc import Iterable

SERVICE_CHOOSES = frozenset(("auto", "default", "openrouter/auto"))
"""Names that leave the choice of the model to the service."""

_DATE = r"[-@:](?:20\d{6}|20\d\d-\d\d-\d\d|\d{4}|latest|preview)$"
_VERSION = r"(?<=\d)-(?=\d)"


def same_model(requested: str, answered: str | None) -> bool:
    """Return True if the name in an answer can mean the requested model.

    Services add a date or `latest`, drop a vendor's prefix, and write 4.5 or 4-5.
    """
    if not answered or requested.lower() in SERVICE_CHOOSES:
        return True
    return _plain(requested) == _plain(answered)


def near(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names most similar to `name`, the best match first."""
    import difflib

    by_plain: dict[str, str] = {}
    for model in known:
        by_plain.setdefault(_plain(model), model)
    found = difflib.get_close_matches(_plain(name), by_plain, count, cutoff=0.5)
    found += [plain for plain in by_plain if _plain(name) in plain and plain not in found]
    return [by_plain[plain] for plain in found[:count]]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return advice for a person who named an unknown model."""
    known = list(known)
    candidates = near(name, known)
    if candidates:
        return f"did you mean {' or '.join(candidates)}?"
    if known:
        return f"choose {', '.join(known[:5])}{' or another' if len(known) > 5 else ''}"
    return "run `trimtab models` to list the models"


def _plain(name: str) -> str:
    text = name.lower().rsplit("/", 1)[-1].removesuffix(".gguf")
    return re.sub(_VERSION, ".", re.sub(_DATE, "", text))
