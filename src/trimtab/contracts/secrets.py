"""Secrets in events: which texts are secret, and how they are hidden in what is stored and shown.

Two kinds. What a person named, and the keys of this program, nobody sees, the model included. What
only looks like a secret is hidden from the log and from everybody who watches, but not from the
model: it would otherwise write the mask into files.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

MASK = "******"
SHORTEST_NAMED = 4
SHORTEST = 8
"""Shorter values stand in too many ordinary words."""

_STARTS = rb"gh[pousr]_|github_pat_|glpat-|npm_|hf_|sk[-_]|A[KS]IA|AIza|xox|eyJ|PRIVATE KEY-"
"""What a recognised secret has in it; a line without any of these is not looked at again."""

_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{20,}",
    r"sk_live_[A-Za-z0-9]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{35}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s]*(?:\\n[A-Za-z0-9+/=]*)*)"
)
_BEGINNINGS = (
    *(("g", "h", "[pousr]", "_"), tuple("github_pat_"), tuple("glpat-"), tuple("npm_")),
    *(tuple("hf_"), ("s", "k", "[-_]"), ("A", "[KS]", "I", "A"), tuple("AIza")),
    *(("x", "o", "x", "[abprs]", "-"), tuple("eyJ")),
)
"""How tokens begin, sign by sign: a piece of a stream may end after any of them."""
_LONGEST_TOKEN = 4096
_LONGEST_KEY = 65536

_NAMED_LIKE_SECRETS = ("TOKEN", "SECRET", "API_KEY", "APIKEY", "PASSWORD", "PASSWD", "PRIVATE_KEY")
_NAMED_LIKE_PLACES = ("_FILE", "_PATH", "_DIR", "_URL", "_URI", "_NAME", "_ID")

_KEPT = frozenset(
    (
        *("type", "id", "timestamp", "kind", "role", "version", "digest", "toolName", "hookType"),
        *("reasoningOpaque", "encryptedContent", "signature", "data", "mimeType", "locationKey"),
        *("agentId", "apiCallId", "compactionAttemptId", "eventId", "hookInvocationId"),
        *("interactionId", "messageId", "originatingMessageId", "parentId", "parentToolCallId"),
        *("previousResponseId", "providerCallId", "reasoningId", "requestId", "sessionId"),
        *("sourceEventId", "toolCallId", "turnId", "upToEventId"),
    )
)
"""Fields that are structure, or must reach a model service byte for byte."""
_FREE = frozenset(("arguments", "toolArgs", "toolInput", "modifiedArgs"))
"""Fields whose contents are somebody's own: names in them mean nothing."""


class Masked(msgspec.Struct, frozen=True):
    """An event's data with its secrets hidden: for the model, and for everybody else."""

    for_model: Any
    for_others: Any


class Masker:
    """Hides secrets in events. Cheap for events that have none."""

    def __init__(self, named: Iterable[str] = (), likely: Iterable[str] = ()) -> None:
        self._named = _usable(named, SHORTEST_NAMED)
        self._all = _usable({*self._named, *_usable(likely, SHORTEST)}, 1)
        self._marks = tuple(dict.fromkeys(_written(value) for value in self._all))
        self._starts = re.compile(_STARTS).search

    def add(self, values: Iterable[str]) -> None:
        """Hide these values too, from now on."""
        known = _usable(values, SHORTEST_NAMED)
        self._named = _usable({*self._named, *known}, 1)
        self._all = _usable({*self._all, *known}, 1)
        self._marks = tuple(dict.fromkeys(_written(value) for value in self._all))

    def suspects(self, line: bytes) -> bool:
        """Whether a line of JSON may hold a secret. Never wrong when it says no."""
        for mark in self._marks:
            if mark in line:
                return True
        return self._starts(line) is not None and _likeness().search(line) is not None

    def mask(self, data: Any) -> Masked:
        """Hide what is secret in the texts of some JSON data; keys and structure stay."""
        for_model = _walk(data, self.mask_named)
        return Masked(for_model, _walk(for_model, self.mask_text))

    def mask_named(self, text: str) -> str:
        return _replace(text, self._named)

    def mask_known(self, text: str) -> str:
        """Without the secrets whose value is known; those are complete when they are found."""
        return _replace(text, self._all)

    def mask_text(self, text: str) -> str:
        """A text as it may be shown."""
        return _shapes().sub(MASK, self.mask_known(text))

    def find_tail(self, text: str) -> int:
        """Where a secret may begin that the next piece of a stream completes; else the length."""
        start = len(text)
        for value in self._all:
            place = text.find(value[0], max(0, len(text) - len(value) + 1))
            while place >= 0:
                if value.startswith(text[place:]):
                    start = min(start, place)
                    break
                place = text.find(value[0], place + 1)
        if begun := _unfinished().search(text, max(0, len(text) - _LONGEST_TOKEN)):
            start = min(start, begun.start())
        key = text.rfind("-----BEGIN")
        if key >= 0 and "-----END" not in text[key:] and len(text) - key < _LONGEST_KEY:
            start = min(start, key)
        return start


def find_secrets(
    env: Mapping[str, str],
    named: Iterable[str] = (),
    keys: Iterable[str] = (),
    values: Iterable[str] = (),
) -> Masker:
    """What is secret: `values`, and in an environment the variables `named` by a person, `keys` of
    ours, and those whose names say so."""
    known = [env.get(name, "") for name in named]
    known += [value for value in values if len(value) >= SHORTEST]
    known += [value for name in keys if len(value := env.get(name, "")) >= SHORTEST]
    return Masker(known, [value for name, value in env.items() if looks_secret(name)])


def looks_secret(name: str) -> bool:
    """Whether a variable holds a secret, as far as its name tells."""
    upper = name.upper()
    return any(word in upper for word in _NAMED_LIKE_SECRETS) and not upper.endswith(
        _NAMED_LIKE_PLACES
    )


def _usable(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """Values long enough to be looked for, longest first: one may be part of another."""
    stripped = {value.strip() for value in values}
    return tuple(sorted((one for one in stripped if len(one) >= shortest), key=len, reverse=True))


def _written(value: str) -> bytes:
    """The beginning of a value as it stands in JSON, up to what may be escaped in several ways."""
    plain = re.split(r'[^!#-\[\]-~ ]', value, maxsplit=1)[0]  # fmt: skip
    if len(plain) < SHORTEST_NAMED:
        plain = max(re.split(r'[^!#-\[\]-~ ]', value), key=len)  # fmt: skip
    return plain.encode()


def _replace(text: str, values: Iterable[str]) -> str:
    for value in values:
        if value in text:
            text = text.replace(value, MASK)
        elif not value.isalnum():
            inner = msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode()[1:-1]
            if inner != value and inner in text:  # inside JSON inside a text
                text = text.replace(inner, MASK)
    return text


def _walk(value: Any, mask: Any, kept: frozenset[str] = _KEPT) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            key: inner
            if key in kept and isinstance(inner, str)
            else _walk(inner, mask, frozenset() if key in _FREE else kept)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_walk(inner, mask, kept) for inner in value]
    return value


@lru_cache(1)
def _shapes() -> re.Pattern[str]:
    tokens = "|".join(_TOKENS)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{tokens})|{_PRIVATE_KEY}")


@lru_cache(1)
def _likeness() -> re.Pattern[bytes]:
    """As the shapes, for lines: what stands before a secret may be the end of an escape there."""
    tokens = "|".join(token.replace("(?![A-Za-z0-9])", "") for token in _TOKENS)
    return re.compile(f"{tokens}|PRIVATE KEY-----".encode())


@lru_cache(1)
def _unfinished() -> re.Pattern[str]:
    begun = "|".join(f"{''.join(signs)}[A-Za-z0-9_.-]*" for signs in _BEGINNINGS)
    partly = "|".join("(?:".join(signs) + ")?" * (len(signs) - 1) for signs in _BEGINNINGS)
    key = r"-{1,5}(?:B(?:E(?:G(?:I)?)?)?)?"
    return re.compile(rf"(?:(?<![A-Za-z0-9])(?:{begun}|{partly})|{key})\Z")
