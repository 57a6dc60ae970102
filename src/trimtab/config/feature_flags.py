"""Feature flags: their defaults, and the files and variables that turn them on."""

import os
from collections.abc import Iterator, Mapping
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
    "MCP_APPS": "off",
}
"""`on`: on for everybody. `experimental`: off until somebody asks for the feature; `--experimental`
and the setting ask for all of them. `staff`: on, because whoever installs this program is its
staff. `off`: off. Every flag can be turned on and off by its name."""
DESCRIPTIONS: Mapping[str, str] = {
    "AUTOPILOT_MODE": "autopilot may be used; --autopilot asks for it, off refuses it",
    "FLEET_COMMAND": "/fleet may split work among sessions; typing it asks for it, off refuses it",
    "LSP_TOOLS": "the lsp tool asks language servers about code",
    "VSCODE_INTEGRATION": "files of VS Code are read: .vscode/mcp.json",
    "QUEUED_COMMANDS": "slash commands typed while the agent works wait for their turn",
    "SKILLS_INSTRUCTIONS": "the model is told which skills there are, and may load them",
    "IMAGE_PASTE_FALLBACK": "an empty paste attaches the image in the clipboard",
    "DISABLE_WEB_TOOLS": "the web tools are not offered",
    "CODE_SCANNING": "the system prompt tells the model to run the code scanner",
    "REPORT_INTENT": "the model says what it is doing with the tool report_intent",
    "MCP_APPS": "SDK clients that ask for it show interfaces of MCP servers",
}
UNKNOWN = "nothing: no such flag exists"
VARIABLE = "COPILOT_CLI_ENABLED_FEATURE_FLAGS"
OPTION = "--feature"
OTHER_VARIABLES: Mapping[str, tuple[str, ...]] = {"MCP_APPS": ("MCP_APPS", "COPILOT_MCP_APPS")}
"""Variables of single flags, besides those that are made from every name."""
Decision = tuple[str, bool, str]
"""The name of a flag, its state, and what decided it."""


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a flag, and the tier, file, variable or option that decided it."""

    name: str
    tier: Tier
    enabled: bool
    decided_by: str

    @property
    def refused(self) -> bool:
        """True if somebody turned the flag off. A tier alone refuses nothing."""
        return not self.enabled and not self.by_tier

    @property
    def by_tier(self) -> bool:
        return self.decided_by.startswith("tier ")

    @property
    def state(self) -> Literal["on", "off", "on request"]:
        if self.enabled:
            return "on"
        return "on request" if self.tier == "experimental" and self.by_tier else "off"

    @property
    def description(self) -> str:
        """The effect of the flag while it is on."""
        return DESCRIPTIONS.get(self.name, UNKNOWN)


def resolve_flags(
    home: Home,
    env: Mapping[str, str],
    *,
    experimental: bool | None = None,
    given: Mapping[str, bool] = {},
) -> dict[str, Flag]:
    """Return all flags: tier, then `config.json` and `settings.json`, then variables, then `given`.

    The last one that names a flag decides. `experimental` turns the flags of that tier on or off;
    None takes the setting.
    """
    files = [os.path.join(home.config, file) for file in ("config.json", "settings.json")]
    contents = {path: _load(path) for path in files}
    flags = {name: _by_tier(name, tier) for name, tier in TIERS.items()}
    for name, enabled, by in (
        *_decide_experimental(contents, experimental),
        *_decide_by_files(contents),
        *((name.strip().upper(), True, VARIABLE) for name in env.get(VARIABLE, "").split(",")),
    ):
        if name:
            flags[name] = _decided(name, enabled, by)
    for name in list(flags):
        others = OTHER_VARIABLES.get(name, ())
        for variable in (f"COPILOT_CLI_{name}", f"COPILOT_FEATURE_{name}", *others):
            if (value := env.get(variable)) is not None:
                enabled = value.strip().lower() in ("1", "true", "on", "yes")
                flags[name] = _decided(name, enabled, variable)
    return flags | {name: _decided(name, enabled, OPTION) for name, enabled in given.items()}


def _decide_experimental(
    contents: Mapping[str, Mapping[str, Any]], experimental: bool | None
) -> list[Decision]:
    """Return the decisions about the flags of the tier `experimental` together."""
    by = "--no-experimental" if experimental is False else "--experimental"
    for path, content in contents.items() if experimental is None else ():
        if isinstance(content.get("experimental"), bool):
            experimental, by = content["experimental"], path
    if experimental is None:
        return []
    return [(name, experimental, by) for name, tier in TIERS.items() if tier == "experimental"]


def _decide_by_files(contents: Mapping[str, Mapping[str, Any]]) -> Iterator[Decision]:
    for path, content in contents.items():
        yield from ((name, False, path) for name in _listed(content, "disabled"))
        yield from ((name, True, path) for name in _listed(content, "enabled"))


def _decided(name: str, enabled: bool, by: str) -> Flag:
    return Flag(name=name, tier=TIERS.get(name, "off"), enabled=enabled, decided_by=by)


def _by_tier(name: str, tier: Tier) -> Flag:
    enabled = tier in ("on", "staff")
    return Flag(name=name, tier=tier, enabled=enabled, decided_by=f"tier {tier}")


def _load(path: str) -> dict[str, Any]:
    """Return the object in a file; a file that cannot be read turns no flag on."""
    try:
        content: Any = read_jsonc(read_regular(path))
    except (OSError, JsonProblem):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(content: Mapping[str, Any], key: Literal["enabled", "disabled"]) -> list[str]:
    """Return the names in `feature_flags.enabled` or `feature_flags.disabled` of a file."""
    flags = content.get("feature_flags")
    names = flags.get(key) if isinstance(flags, dict) else None
    if not isinstance(names, list):
        return []
    return [name.upper() for name in names if isinstance(name, str)]
