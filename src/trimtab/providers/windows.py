"""How much well-known models take in, for where neither a person nor the service says."""

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
"""Starts of models' names, without vendor and with a hyphen at the end, and windows in tokens."""

DEFAULT = 64_000
"""What is assumed of a model nobody says anything about."""


def window_of(model: str) -> int | None:
    """The context window of a well-known model, or None."""
    name = f"{model.lower().rsplit('/', 1)[-1]}-"
    return next((window for starts, window in _WINDOWS if name.startswith(starts)), None)
