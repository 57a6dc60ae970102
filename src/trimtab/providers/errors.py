"""Converts the errors of model services to `ModelError`, by tables of statuses and codes."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.contracts.errors import AuthenticationError, ModelError

_BY_STATUS = {
    400: "invalid",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "retryable",
    409: "retryable",
    413: "too_large",
    422: "invalid",
    429: "rate_limit",
    499: "retryable",
    503: "overloaded",
    529: "overloaded",
}

# Codes and types that are more specific than the status they come with.
_BY_CODE = {
    "insufficient_quota": "quota",
    "quota_exceeded": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "insufficient_balance": "quota",
    "context_length_exceeded": "too_large",
    "model_max_prompt_tokens_exceeded": "too_large",
    "request_too_large": "too_large",
    "string_above_max_length": "too_large",
    "overloaded_error": "overloaded",
    "engine_overloaded": "overloaded",
    "model_overloaded": "overloaded",
    "unavailable": "overloaded",
    "slow_down": "overloaded",
    "model_not_found": "not_found",
    "model_not_supported": "not_found",
    "invalid_model": "not_found",
    "deploymentnotfound": "not_found",
    "content_filter": "refused",
    "content_policy_violation": "refused",
}

# Used only for errors without a status, in the middle of a stream.
_BY_STREAM_TYPE = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_api_key": "auth",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "resource_exhausted": "rate_limit",
    "not_found_error": "not_found",
    "invalid_request_error": "invalid",
    "invalid_prompt": "refused",
}

# Phrases of well-known services for a conversation that does not fit the model.
_TOO_LARGE = (
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "context window",
    "context limit",
    "context size",
    "greater than the context length",
    "prompt is too long",
    "input is too long",
    "input token count",
    "maximum prompt length",
    "prompt token count",
    "reduce the length of the messages",
    "exceeded model token limit",
    "too many tokens",
    "too large for model",
)

# Phrases of services without error codes for an unknown model.
_UNKNOWN_MODEL = (
    r"\b(unknown|invalid|no such) model\b|\bnot a (valid|known) model\b|^model: \S+$"
    r"|\bmodels?[:/]? ?(\S{1,200} )?((is|was|does|could) )?not (be )?"
    r"(found|exist|supported|available)\b"
)

# Scripts search for the vendors' own words ("unauthorized", "rate limit", "unknown model").
_WORDS = {
    "auth": (
        "Unauthorized: the model service refused the credentials",
        "set a valid key for it",
    ),
    "forbidden": (
        "Forbidden: the model service refused the credentials",
        "use a key that may call this model",
    ),
    "quota": (
        "Quota exceeded: the account's quota or credit is used up",
        "check its plan and billing, or use another provider",
    ),
    "rate_limit": (
        "Rate limit reached: too many requests",
        "wait a moment and try again",
    ),
    "overloaded": ("The model service is overloaded", "try again in a moment"),
    "retryable": ("The model service failed", "try again in a moment"),
    "invalid": ("Bad request: the service rejected it", "correct what it names"),
    "not_found": (
        "Unknown model or address",
        "check the name of the model and the base URL",
    ),
    "unknown_model": (
        "Unknown model: model not found",
        "name a model of this service (`trimtab models` lists them)",
    ),
    "too_large": (
        "The conversation is too large for the model",
        "compact it or start a new session",
    ),
    "refused": ("The model service declined to answer", "reword the request"),
}

_STATUS_CODES = frozenset(map(str, range(400, 600)))
_REQUEST_IDS = ("x-request-id", "request-id", "x-github-request-id", "apim-request-id", "cf-ray")
_MESSAGE_LIMIT = 400


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str] = ()
) -> ModelError:
    """Return the error for an unsuccessful HTTP answer."""
    message, codes = _read_body(body)
    if 300 <= status < 400:
        message = f"it redirects to {headers.get('location', 'another address')}"
    category = _category(status, message, codes)
    error = _build(category, status, redact(message, secrets), codes)
    error.retry_after = retry_after(headers)
    error.request_id = request_id(headers)
    return error


def from_stream(value: Any, *, secrets: Sequence[str] = ()) -> ModelError:
    """Return the error for an error object in the middle of a stream."""
    message, codes = _read_error(value)
    status = next((int(code) for code in codes if code in _STATUS_CODES), None)
    category = _category(status, message, codes)
    return _build(category, status, redact(message, secrets), codes)


def unknown_model(where: str, model: str, advice: str, status: int | None = None) -> ModelError:
    """Return the error for a model that is not in a service's list."""
    detail = f" (status {status})" if status else ""
    return ModelError(
        f"Unknown model {model!r}: model not found at {where}{detail}; {advice}",
        category="not_found",
        status=status,
        code="model_not_found",
    )


def request_id(headers: Mapping[str, str]) -> str | None:
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds a service asks to wait, given as milliseconds, seconds or a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    return _until(value, now) if value else None


def redact(text: str, secrets: Sequence[str]) -> str:
    """Remove our keys, and anything that looks like a key, from a text."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    text = re.sub(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}", r"\1 ***", text)
    return re.sub(r"\b(sk|pk|rk|gsk|xai|ghp|gho|ghu|ghs|github_pat)[-_][\w*.-]{6,}", "***", text)


def _category(status: int | None, message: str, codes: Sequence[str]) -> str:
    for code in codes:
        if code in _BY_CODE:
            return _BY_CODE[code]
    lowered = message.lower()
    if status in {None, 400, 413, 422, 500} and any(phrase in lowered for phrase in _TOO_LARGE):
        return "too_large"
    if status in {400, 422} and names_unknown_model(message):
        return "not_found"
    if status == 400 and not message.strip() and not codes:
        return "retryable"  # nothing is named that could be corrected; a gateway may recover
    if status is None:
        known = (_BY_STREAM_TYPE[code] for code in codes if code in _BY_STREAM_TYPE)
        return next(known, "retryable")
    return _BY_STATUS.get(status) or ("retryable" if status >= 500 else "invalid")


def names_unknown_model(message: str) -> bool:
    """Return True if a service's message says that it does not have the model."""
    return re.search(_UNKNOWN_MODEL, message, re.IGNORECASE) is not None


def _find_words(
    category: str, status: int | None, message: str, codes: Sequence[str]
) -> tuple[str, str]:
    if category == "auth" and status == 403:
        return _WORDS["forbidden"]
    if category == "not_found" and (
        names_unknown_model(message) or any("model" in code for code in codes)
    ):
        return _WORDS["unknown_model"]
    return _WORDS[category]


def _build(category: str, status: int | None, message: str, codes: Sequence[str]) -> ModelError:
    summary, advice = _find_words(category, status, message, codes)
    message = " ".join(message.split()).rstrip(" .;")
    if len(message) > _MESSAGE_LIMIT:
        message = message[:_MESSAGE_LIMIT] + "…"
    detail = ": ".join(part for part in (f"status {status}" if status else "", message) if part)
    text = f"{summary} ({detail}); {advice}." if detail else f"{summary}; {advice}."
    if category == "auth":
        return AuthenticationError(text, status=status)
    code = next((code for code in codes if not code.isdigit()), None)
    return ModelError(text, category=category, status=status, code=code)


def _read_body(body: bytes) -> tuple[str, list[str]]:
    """Return the service's message and codes, from JSON in any of the known forms, or text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:4096].decode("utf-8", "replace").strip()
        return ("" if text.startswith("<") else text), []
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        inner = value.get("error")
        return _read_error(inner or value)
    return (value if isinstance(value, str) else ""), []


def _read_error(value: Any) -> tuple[str, list[str]]:
    if isinstance(value, str):
        return value, []
    if not isinstance(value, dict):
        return "", []
    if isinstance(value.get("error"), dict):
        return _read_error(value["error"])
    message = value.get("message") or value.get("detail") or value.get("error") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    codes = [str(value[key]).lower() for key in ("code", "type", "status") if value.get(key)]
    return message, codes


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(date: str, now: float | None) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    return max(0.0, moment - (time.time() if now is None else now))
