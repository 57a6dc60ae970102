"""Finds and masks secrets in events before they are stored or shown.

There are two kinds. Values of variables a person named, and this program's own keys, are masked for
everybody, the model included. Text that only looks like a secret is masked in the log and for
everybody who watches, but not for the model, which would otherwise write the mask into files.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

MASK = "******"
SHORTEST_NAMED = 4
SHORTEST = 8
"""Shorter values occur in too many ordinary words."""

TOKEN_HINTS = (
    rb"h(?:(?<=gh)[pousr]_|f_)|_(?<=github_)pat_|p(?:(?<=glp)at-|(?<=np)m_)|k(?<=sk)[-_]"
    rb"|A(?:[KS]IA|Iza)|xox|J(?<=eyJ)|V(?<=PRIV)ATE KEY-"
)
"""Cheap first test: a line without any of these contains no recognised token.

Each begins with a rare character and looks back at those before it: `J` is tried less than `eyJ`.
"""

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
"""The first characters of tokens, one by one: a piece of a stream may end after any of them."""
_LONGEST_TOKEN = 4096
_LONGEST_KEY = 65536

_SECRET_WORDS = ("TOKEN", "SECRET", "API_KEY", "APIKEY", "PASSWORD", "PASSWD", "PRIVATE_KEY")
_LOCATION_SUFFIXES = ("_FILE", "_PATH", "_DIR", "_URL", "_URI", "_NAME", "_ID")

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
"""Fields that are structural, or that must reach a model service byte for byte."""
_FREE = frozenset(("arguments", "toolArgs", "toolInput", "modifiedArgs"))
"""Fields with free-form contents, in which the names of `_KEPT` have no meaning."""


class Masked(msgspec.Struct, frozen=True):
    """An event's data with its secrets hidden: for the model, and for everybody else."""

    for_model: Any
    for_others: Any


class Masker:
    """Masks secrets in events; cheap for events without any."""

    def __init__(self, named: Iterable[str] = (), likely: Iterable[str] = ()) -> None:
        self._named = _longest_first(named, SHORTEST_NAMED)
        self._all = _longest_first({*self._named, *_longest_first(likely, SHORTEST)}, 1)
        self._byte_hints = tuple(dict.fromkeys(_json_prefix(value) for value in self._all))
        self._has_token_hint = re.compile(TOKEN_HINTS).search

    def add(self, values: Iterable[str]) -> None:
        """Mask these values too, from now on."""
        known = _longest_first(values, SHORTEST_NAMED)
        self._named = _longest_first({*self._named, *known}, 1)
        self._all = _longest_first({*self._all, *known}, 1)
        self._byte_hints = tuple(dict.fromkeys(_json_prefix(value) for value in self._all))

    def may_contain_secret(self, line: bytes) -> bool:
        """Return False only if a line of JSON certainly contains no secret."""
        for hint in self._byte_hints:
            if hint in line:
                return True
        return self._has_token_hint(line) is not None and _line_pattern().search(line) is not None

    def mask(self, data: Any) -> Masked:
        """Mask the secrets in the strings of JSON data; keys and structure stay."""
        for_model = _walk(data, self.mask_named)
        return Masked(for_model, _walk(for_model, self.mask_text))

    def mask_named(self, text: str) -> str:
        return _replace(text, self._named)

    def mask_known(self, text: str) -> str:
        """Mask the secrets whose value is known; a match of those is never partial."""
        return _replace(text, self._all)

    def mask_text(self, text: str) -> str:
        """Mask every secret in a text that is to be shown."""
        return _secret_pattern().sub(MASK, self.mask_known(text))

    def find_cut_secret(self, text: str) -> int:
        """Return the index of a possible secret cut off by the end of the text; else its length."""
        start = len(text)
        for value in self._all:
            index = text.find(value[0], max(0, len(text) - len(value) + 1))
            while index >= 0:
                if value.startswith(text[index:]):
                    start = min(start, index)
                    break
                index = text.find(value[0], index + 1)
        if begun := _cut_pattern().search(text, max(0, len(text) - _LONGEST_TOKEN)):
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
    """Return a masker for `values` and for variables of an environment: those `named` by a person,
    our own `keys`, and those whose names suggest a secret."""
    known = [env.get(name, "") for name in named]
    known += [value for value in values if len(value) >= SHORTEST]
    known += [value for name in keys if len(value := env.get(name, "")) >= SHORTEST]
    return Masker(known, [value for name, value in env.items() if looks_secret(name)])


def looks_secret(name: str) -> bool:
    """Return True if a variable's name suggests that it holds a secret."""
    upper = name.upper()
    return any(word in upper for word in _SECRET_WORDS) and not upper.endswith(_LOCATION_SUFFIXES)


def _longest_first(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """Return the values that are long enough, longest first: one may be part of another."""
    stripped = {value.strip() for value in values}
    return tuple(sorted((v for v in stripped if len(v) >= shortest), key=len, reverse=True))


def _json_prefix(value: str) -> bytes:
    """Return a part of a value that every JSON encoder writes the same way."""
    plain = re.split(r'[^!#-\[\]-~ ]', value, maxsplit=1)[0]  # fmt: skip
    if len(plain) < SHORTEST_NAMED:
        plain = max(re.split(r'[^!#-\[\]-~ ]', value), key=len)  # fmt: skip
    return plain.encode()


def _replace(text: str, values: Iterable[str]) -> str:
    for value in values:
        if value in text:
            text = text.replace(value, MASK)
        elif not value.isalnum():
            nested = msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode()[1:-1]
            if nested != value and nested in text:  # JSON embedded in a text
                text = text.replace(nested, MASK)
    return text


def _walk(value: Any, mask: Any, kept: frozenset[str] = _KEPT) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            key: nested
            if key in kept and isinstance(nested, str)
            else _walk(nested, mask, frozenset() if key in _FREE else kept)
            for key, nested in value.items()
        }
    if isinstance(value, list):
        return [_walk(nested, mask, kept) for nested in value]
    return value


@lru_cache(1)
def _secret_pattern() -> re.Pattern[str]:
    tokens = "|".join(_TOKENS)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{tokens})|{_PRIVATE_KEY}")


@lru_cache(1)
def _line_pattern() -> re.Pattern[bytes]:
    """Match tokens in encoded lines, where the character before one may be the end of an escape."""
    tokens = "|".join(token.replace("(?![A-Za-z0-9])", "") for token in _TOKENS)
    return re.compile(f"{tokens}|PRIVATE KEY-----".encode())


@lru_cache(1)
def _cut_pattern() -> re.Pattern[str]:
    begun = "|".join(f"{''.join(each)}[A-Za-z0-9_.-]*" for each in _BEGINNINGS)
    partly = "|".join(
        "(?:".join(characters) + ")?" * (len(characters) - 1) for characters in _BEGINNINGS
    )
    key = r"-{1,5}(?:B(?:E(?:G(?:I)?)?)?)?"
    return re.compile(rf"(?:(?<![A-Za-z0-9])(?:{begun}|{partly})|{key})\Z")
