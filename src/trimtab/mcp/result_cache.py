"""Keeps answers of a server for as long as the server says that they hold (`ttlMs`)."""

import time
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject

CACHEABLE = frozenset(
    ("prompts/list", "resources/list", "resources/templates/list", "resources/read")
)
"""Methods whose answers are kept; the list of tools is kept between sessions as well."""
MAX_SECONDS = 24 * 3600.0
MAX_ENTRIES = 100
MAX_BYTES = 1024 * 1024
"""Larger answers are fetched each time."""
CHANGES = {
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": tuple(CACHEABLE - {"prompts/list"}),
    "notifications/resources/updated": ("resources/read",),
}


def read_ttl(answer: JsonObject) -> float:
    """Return the seconds for which an answer holds; 0 if it does not say so."""
    ttl: Any = answer.get("ttlMs")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        return 0.0
    return min(ttl / 1000, MAX_SECONDS)


class ResultCache:
    """The answers of one connection that still hold."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], tuple[float, bytes]] = {}
        """Method and parameters → the end of the answer's time, and the answer."""

    def find(self, method: str, params: JsonObject) -> JsonObject | None:
        """Return an answer that still holds, or None."""
        key = _key(method, params)
        end, answer = self._kept.get(key, (0.0, b""))
        if time.monotonic() < end:
            found: JsonObject = msgspec.json.decode(answer)
            return found
        self._kept.pop(key, None)
        return None

    def keep(self, method: str, params: JsonObject, answer: JsonObject) -> None:
        """Keep an answer, unless it depends on more than the request."""
        ttl = read_ttl(answer)
        if method not in CACHEABLE or not ttl or answer.get("resultType") == "input_required":
            return
        encoded = msgspec.json.encode(answer)
        if len(encoded) > MAX_BYTES:
            return
        self._kept[_key(method, params)] = (time.monotonic() + ttl, encoded)
        if len(self._kept) > MAX_ENTRIES:
            del self._kept[next(iter(self._kept))]

    def forget(self, notice: str) -> None:
        """Drop the answers that a notification of the server makes invalid."""
        for method in CHANGES.get(notice, ()):
            for key in [key for key in self._kept if key[0] == method]:
                del self._kept[key]

    def clear(self) -> None:
        self._kept.clear()


def _key(method: str, params: JsonObject) -> tuple[str, bytes]:
    return method, msgspec.json.encode(params, order="sorted")
