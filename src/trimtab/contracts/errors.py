"""Errors for people, and the exit codes of the program.

    TrimtabError                FAILURE
    ├── UsageError              USAGE           the command line is wrong
    ├── ConfigurationError      USAGE           a file, variable or setting is wrong
    │   ├── SessionNotFound
    │   └── SessionInUse
    ├── StorageError            FAILURE         the disk or the operating system failed
    └── ModelError              MODEL           the model or its service failed
        └── AuthenticationError AUTHENTICATION

A message is one sentence for a person and ends with what to do.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a headless run. A run that a signal ends exits with 128 + its number."""

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    INCOMPLETE = 3
    """The agent is blocked, or makes no progress."""
    DENIED = 4
    """A permission was missing."""
    BUDGET = 5
    """The limit of tokens or money was reached."""
    LIMIT = 6
    """The limit of turns or time was reached."""
    AUTHENTICATION = 7
    MODEL = 8
    INTERRUPTED = 130
    """SIGINT, or an abort by a client."""
    BROKEN_PIPE = 141
    """The reader of the output is gone."""


class TrimtabError(Exception):
    """An error that a person must act on."""

    exit_code = ExitCode.FAILURE
    error_type = "query"

    @property
    def message(self) -> str:
        return str(self)


class UsageError(TrimtabError):
    exit_code = ExitCode.USAGE
    error_type = "usage"


class ConfigurationError(TrimtabError):
    exit_code = ExitCode.USAGE
    error_type = "configuration"


class SessionNotFound(ConfigurationError):
    pass


class SessionInUse(ConfigurationError):
    pass


class StorageError(TrimtabError):
    """The disk or the operating system failed, through no fault of the command or its settings."""

    error_type = "storage"


class ModelError(TrimtabError):
    """A model call failed.

    `category` decides how the runtime reacts: `retryable`, `overloaded`, `rate_limit`, `auth`,
    `quota`, `invalid`, `not_found`, `too_large`, `transport` (no answer, or a broken one),
    `refused`, `budget` (nothing is left to pay for the call).
    """

    exit_code = ExitCode.MODEL
    reported = False
    """True once clients have received an event about this error."""

    def __init__(
        self,
        message: str,
        *,
        category: str = "retryable",
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.category = category
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id
        self.code = code
        self.error_type = _ERROR_TYPES.get(category, "query")


class AuthenticationError(ModelError):
    exit_code = ExitCode.AUTHENTICATION

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, category="auth", status=status)


_ERROR_TYPES = {
    "auth": "authentication",
    "rate_limit": "rate_limit",
    "quota": "quota",
    "too_large": "context_limit",
    "not_found": "model_not_found",
    "invalid": "invalid_request",
}
