"""Feature flags: their defaults, and the files and variables that turn them on."""

import os
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import Home

Tier = Literal["on", "experimental", "staff", "off"]
TIERS: Mapping[str, Tier] = {
    "AUTOPILOT_MODE": "experimental",
    "FLEET_COMMAND": "experimental",
    "LSP_TOOLS": "on",
    "VSCODE_INTEGRATION": "staff",
    "QUEUED_COMMANDS": "staff",
    "SKILLS_INSTRUCTIONS": "staff",
    "IMAGE_PASTE_FALLBACK": "staff",
    "DISABLE_WEB_TOOLS": "off",
    "CODE_SCANNING": "off",
    "REPORT_INTENT": "off",
}
"""`on`: always. `experimental`: with --experimental or the setting. `staff`: for GitHub's staff;
here only if named. `off`: only if named."""
USED = frozenset(("CODE_SCANNING", "DISABLE_WEB_TOOLS", "REPORT_INTENT"))
"""Flags with an effect here; the others are recognised, but change nothing."""
VARIABLE = "COPILOT_CLI_ENABLED_FEATURE_FLAGS"


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a flag, and the tier, file or variable that decided it."""

    name: str
    tier: Tier
    enabled: bool
    decided_by: str


def resolve_flags(
    home: Home, env: Mapping[str, str], *, experimental: bool | None = None
) -> dict[str, Flag]:
    """Return all flags: tier defaults, then `config.json`, then the environment; the last wins.

    `experimental` turns the flags of that tier on or off; None takes the setting.
    """
    files = [os.path.join(home.config, file) for file in ("config.json", "settings.json")]
    contents = {path: _load(path) for path in files}
    if experimental is None:
        experimental = any(content.get("experimental") is True for content in contents.values())
    flags = {name: _by_tier(name, tier, experimental) for name, tier in TIERS.items()}

    def decide(name: str, enabled: bool, by: str) -> None:
        tier = TIERS.get(name, "off")
        flags[name] = Flag(name=name, tier=tier, enabled=enabled, decided_by=by)

    for path, content in contents.items():
        for name in _listed(content):
            decide(name, True, path)
    for name in env.get(VARIABLE, "").split(","):
        if name.strip():
            decide(name.strip().upper(), True, VARIABLE)
    for name in list(flags):
        for variable in (f"COPILOT_CLI_{name}", f"COPILOT_FEATURE_{name}"):
            if (value := env.get(variable)) is not None:
                decide(name, value.strip().lower() in ("1", "true", "on", "yes"), variable)
    return flags


def _by_tier(name: str, tier: Tier, experimental: bool) -> Flag:
    enabled = tier == "on" or (tier == "experimental" and experimental)
    return Flag(name=name, tier=tier, enabled=enabled, decided_by=f"tier {tier}")


def _load(path: str) -> dict[str, Any]:
    """Return the object in a file; a file that cannot be read turns no flag on."""
    try:
        content: Any = read_jsonc(read_regular(path))
    except (OSError, JsonProblem):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(content: Mapping[str, Any]) -> list[str]:
    """Return the names in `feature_flags.enabled` of a file."""
    flags = content.get("feature_flags")
    enabled = flags.get("enabled") if isinstance(flags, dict) else None
    if not isinstance(enabled, list):
        return []
    return [name.upper() for name in enabled if isinstance(name, str)]
