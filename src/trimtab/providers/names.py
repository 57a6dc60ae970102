"""Names of models: when two mean the same model, and which ones a mistyped name may have meant."""

import re
from collections.abc import Iterable

SERVICE_CHOOSES = frozenset(("auto", "default", "openrouter/auto"))
"""Names that leave the choice to the service: whatever answers is what was asked for."""

_DATE = re.compile(r"[-@:](?:20\d{6}|20\d\d-\d\d-\d\d|\d{4}|latest|preview)$")
_VERSION = re.compile(r"(?<=\d)-(?=\d)")


def same_model(asked: str, answered: str | None) -> bool:
    """Whether a service's name for what answered can be the model it was asked for.

    Services add a date or `latest`, drop a vendor's prefix, and write 4.5 or 4-5.
    """
    if not answered or asked.lower() in SERVICE_CHOOSES:
        return True
    return _plain(asked) == _plain(answered)


def near(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like `name`, nearest first."""
    import difflib

    by_plain: dict[str, str] = {}
    for one in known:
        by_plain.setdefault(_plain(one), one)
    found = difflib.get_close_matches(_plain(name), by_plain, count, cutoff=0.5)
    found += [plain for plain in by_plain if _plain(name) in plain and plain not in found]
    return [by_plain[plain] for plain in found[:count]]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Advice for somebody who named a model that is not there."""
    known = list(known)
    candidates = near(name, known)
    if candidates:
        return f"did you mean {' or '.join(candidates)}?"
    if known:
        return f"there are {', '.join(known[:5])}{' and others' if len(known) > 5 else ''}"
    return "run `trimtab models` to see what there is"


def _plain(name: str) -> str:
    text = name.lower().rsplit("/", 1)[-1].removesuffix(".gguf")
    text = _DATE.sub("", text)
    return _VERSION.sub(".", text)
