"""The protocols that the bridge serves, as a table, and the adapter of one request."""

from collections.abc import Mapping
from math import ceil

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.providers.http_server import Headers
from trimtab.providers.wires import new_server_wire

NO_RETRY = ("x-should-retry", "false")
"""The header at which the official packages and Claude Code give up at once."""


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's protocol: its wire, and its words for errors that clients must recognise.

    `used_up` is the status and code at which real clients stop when a limit is reached.
    `too_large` begins the message by which clients know that they must compact.
    """

    wire: str
    used_up: tuple[int, str]
    codes: dict[str, str] = {}
    too_large: str = ""


_OPENAI_CODES = {
    "not_found": "model_not_found",
    "quota": "insufficient_quota",
    "too_large": "context_length_exceeded",
    "rate_limit": "rate_limit_exceeded",
    "auth": "invalid_api_key",
}

PROTOCOLS = {
    "/v1/messages": Protocol(
        wire="anthropic-messages",
        used_up=(402, "billing_error"),
        too_large="prompt is too long: ",
    ),
    "/v1/chat/completions": Protocol(
        wire="openai-chat", used_up=(402, "insufficient_quota"), codes=_OPENAI_CODES
    ),
    "/v1/responses": Protocol(
        wire="openai-responses", used_up=(429, "insufficient_quota"), codes=_OPENAI_CODES
    ),
}
"""Path → protocol. Another protocol needs an entry here and the server side of its wire."""

_STATUSES = {
    "auth": 401,
    "quota": 429,
    "rate_limit": 429,
    "overloaded": 503,
    "invalid": 400,
    "refused": 400,
    "not_found": 404,
    "too_large": 400,
    "retryable": 502,
    "transport": 502,
}


class Failure(msgspec.Struct, frozen=True):
    """An error as a client of a protocol sees it."""

    status: int
    message: str
    code: str | None
    headers: Headers


class Adapter:
    """Answers one request in the format of a protocol."""

    def __init__(self, path: str, protocol: Protocol) -> None:
        self.path = path
        self.protocol = protocol
        self.wire = new_server_wire(protocol.wire)

    def describe(self, error: ModelError) -> Failure:
        """Return an error in the words of the vendor, with the status of the service."""
        if error.category == "budget":
            status, code = self.protocol.used_up
            return Failure(status, error.message, code, (NO_RETRY,))
        status = error.status or 0
        if not 400 <= status < 600:
            status = _STATUSES.get(error.category, 502)
        headers = []
        if error.retry_after is not None:
            headers.append(("retry-after", str(ceil(error.retry_after))))
        if status == 401 or error.category == "quota":
            headers.append(NO_RETRY)
        message = error.message
        if error.category == "too_large":
            message = self.protocol.too_large + message
        return Failure(status, message, self.protocol.codes.get(error.category), headers)

    def error(self, failure: Failure) -> bytes:
        return self.wire.error(failure.status, failure.message, failure.code)


def new_adapter(path: str, protocols: Mapping[str, Protocol] = PROTOCOLS) -> Adapter:
    """Return an adapter of the protocol that a path belongs to; OpenAI's chat for all others."""
    known = (prefix for prefix in protocols if path.startswith(prefix))
    prefix = next(known, "/v1/chat/completions")
    return Adapter(prefix, protocols[prefix])
