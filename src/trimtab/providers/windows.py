"""Context windows of well-known models, used if neither settings nor the service tell."""

_WINDOWS = (
    (("gpt-4.1",), 1_047_576),
    (("gpt-5",), 400_000),
    (("gpt-4o", "gpt-4-turbo", "chatgpt-4o"), 128_000),
    (("gpt-4-32k",), 32_768),
    (("gpt-4",), 8_192),
    (("gpt-3.5",), 16_385),
    (("o1-", "o3-", "o4-"), 200_000),
    (("claude",), 200_000),
    (("gemini",), 1_048_576),
)
"""Prefixes of names (without vendor, with a hyphen appended) and windows in tokens."""

DEFAULT = 64_000
"""The assumed window of an unknown model."""


def window_of(model: str) -> int | None:
    """Return the context window of a well-known model, or None."""
    name = f"{model.lower().rsplit('/', 1)[-1]}-"
    return next((window for prefixes, window in _WINDOWS if name.startswith(prefixes)), None)
