"""The words of the Model Context Protocol: versions, codes, names, and errors. No I/O."""

from collections.abc import Callable
from typing import Any

STATELESS = "2026-07-28"
"""The version without handshake and sessions: each request carries what the others agree on."""
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The supported versions with a handshake, newest first: the first is offered, all are accepted."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
METHOD_NOT_FOUND = -32601
UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"
"""The prefix of the protocol's own names in `_meta`."""
VERSION_KEY, CLIENT_KEY = f"{META}protocolVersion", f"{META}clientInfo"
CAPABILITIES_KEY, SERVER_KEY = f"{META}clientCapabilities", f"{META}serverInfo"
LOG_LEVEL_KEY = f"{META}logLevel"
MAX_REQUEST_SECONDS = 3600.0
"""The time after which a request is cancelled, whatever progress it reports."""
Progress = Callable[[str], None]
"""Called with each report of progress."""


class ServerProblem(Exception):
    """Raised when a server cannot be used; the message is a clause about it, for a person."""

    def __init__(
        self, message: str, *, needs_auth: bool = False, gone: bool = False, status: int = 0
    ) -> None:
        super().__init__(message)
        self.needs_auth = needs_auth
        self.gone = gone
        """True if the connection is lost, so that a new one may work."""
        self.status = status
        """The HTTP status of an answer that is not a success; 0 for other problems."""


class RemoteError(Exception):
    """Raised when the server answers a request with an error, or to answer it with one."""

    def __init__(self, message: str, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def read_error(error: Any) -> RemoteError:
    """Return the error of an answer, whatever shape it has."""
    if not isinstance(error, dict):
        return RemoteError(str(error)[:4000])
    code = error.get("code")
    text = str(error.get("message"))[:4000]
    return RemoteError(text, code if isinstance(code, int) else 0, error.get("data"))


def read_id(value: Any) -> int | None:
    """Return the number of a request; some servers return it as text, or as a float."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:20])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
