"""Feature flags: what each is by default, and who may turn it on."""

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
"""`on`: for everybody. `experimental`: with --experimental or the setting. `staff`: GitHub's own
people; here, whoever turns it on. `off`: nobody, unless it is named."""
USED = frozenset(("CODE_SCANNING", "DISABLE_WEB_TOOLS", "REPORT_INTENT"))
"""Flags something here depends on; the others are known and change nothing."""
VARIABLE = "COPILOT_CLI_ENABLED_FEATURE_FLAGS"


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag as it is now, and what decided."""

    name: str
    tier: Tier
    enabled: bool
    decided_by: str


def resolve_flags(
    home: Home, env: Mapping[str, str], *, experimental: bool | None = None
) -> dict[str, Flag]:
    """Tier defaults, then `config.json`, then the environment; the last that speaks decides.

    `experimental` turns the flags of that tier on or off; None leaves it to the setting.
    """
    files = [os.path.join(home.config, file) for file in ("config.json", "settings.json")]
    contents = {path: _load(path) for path in files}
    if experimental is None:
        experimental = any(one.get("experimental") is True for one in contents.values())
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
    """A file that cannot be read turns nothing on."""
    try:
        content: Any = read_jsonc(read_regular(path))
    except (OSError, JsonProblem):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(content: Mapping[str, Any]) -> list[str]:
    """`feature_flags.enabled` of a file."""
    flags = content.get("feature_flags")
    enabled = flags.get("enabled") if isinstance(flags, dict) else None
    if not isinstance(enabled, list):
        return []
    return [name.upper() for name in enabled if isinstance(name, str)]
