"""Errors for people. Each class carries the exit code of a headless run that ends with it.

    TrimtabError                1
    ├── UsageError              2   the command line is wrong
    ├── ConfigurationError      2   a file, variable or setting is wrong
    │   ├── SessionNotFound     2
    │   └── SessionInUse        2
    ├── StorageError            1   the disk is full or broken, or a limit of the system is reached
    ├── BlockedError            3   the work cannot go on, or makes no progress
    ├── DeniedError             4   a permission was missing
    ├── BudgetReached           5   money or tokens
    ├── LimitReached            6   turns or time
    └── ModelError              8   the model or its service
        └── AuthenticationError 7

A message is one sentence for a person and ends with what to do.
"""


class TrimtabError(Exception):
    """An error that a person must act on."""

    exit_code = 1
    error_type = "query"

    @property
    def message(self) -> str:
        return str(self)


class UsageError(TrimtabError):
    exit_code = 2
    error_type = "usage"


class ConfigurationError(TrimtabError):
    exit_code = 2
    error_type = "configuration"


class SessionNotFound(ConfigurationError):
    pass


class SessionInUse(ConfigurationError):
    pass


class StorageError(TrimtabError):
    """The disk or the operating system failed, through no fault of the command or its settings."""

    error_type = "storage"


class BlockedError(TrimtabError):
    exit_code = 3
    error_type = "blocked"


class DeniedError(TrimtabError):
    exit_code = 4
    error_type = "denied"


class BudgetReached(TrimtabError):
    exit_code = 5
    error_type = "budget"


class LimitReached(TrimtabError):
    exit_code = 6
    error_type = "limit"


class ModelError(TrimtabError):
    """A model call failed.

    `category` decides how the runtime reacts: `retryable`, `overloaded`, `rate_limit`, `auth`,
    `quota`, `invalid`, `not_found`, `too_large`, `transport` (no answer, or a broken one),
    `refused`, `budget` (nothing is left to pay for the call).
    """

    exit_code = 8
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
    exit_code = 7

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
