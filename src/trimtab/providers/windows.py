"""How much well-known models take in, for where neither a person nor the service says."""

import re

_WINDOWS = (
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-5", 400_000),
    (r"gpt-4o|gpt-4-turbo|chatgpt-4o", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"o[134](-|$)", 200_000),
    (r"claude", 200_000),
    (r"gemini", 1_048_576),
)
"""The start of a model's name, without vendor, and its context window in tokens."""

DEFAULT = 64_000
"""What is assumed of a model nobody says anything about."""


def window_of(model: str) -> int | None:
    """The context window of a well-known model, or None."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((window for start, window in _WINDOWS if re.match(start, name)), None)
