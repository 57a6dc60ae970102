"""Resolves the options of a session: flag, environment, agent, setting, default, in this order.

An option that was not given is None. All other code reads resolved options; `OptionOwner` keeps
the given ones and resolves them again after a change.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import ConfigurationError, TrimtabError, UsageError
from trimtab.contracts.options import (
    DEFAULT_CONTINUES,
    RetryPolicy,
    SessionOptions,
    Thresholds,
    smallest_budget,
)
from trimtab.customize.customizations import Customizations

Chosen = tuple[Any, str]
"""A value and the name of its source."""


class Option(msgspec.Struct, frozen=True):
    """An option with several possible sources. `path` is its field in `SessionOptions`."""

    path: str
    flag: str
    variable: str = ""
    setting: str = ""
    default: Any = None


class Resolved(msgspec.Struct, frozen=True):
    """Resolved options, and the source of each option in `OPTIONS`."""

    options: SessionOptions
    sources: Mapping[str, str]


class OptionOwner:
    """Owns the options of one session: those that were given, and what they resolve to.

    Every later change goes through `change`. A value from a flag or a client therefore continues
    to override settings, and customizations see the same options as all other code.
    """

    def __init__(
        self,
        given: SessionOptions,
        resolved: Resolved,
        custom: Customizations,
        env: Mapping[str, str],
    ) -> None:
        self._given = given
        self._resolved = resolved
        self._custom = custom
        self._env = env

    @property
    def given(self) -> SessionOptions:
        """The options as they were given, before an agent or settings add to them."""
        return self._given

    @property
    def current(self) -> SessionOptions:
        return self._resolved.options

    @property
    def sources(self) -> Mapping[str, str]:
        """The source of each option in `OPTIONS`."""
        return self._resolved.sources

    def change(self, **changes: Any) -> SessionOptions:
        """Change fields of `SessionOptions`, and return the resolved options."""
        before, agent = self._given, self._custom.agent
        self._custom.given = msgspec.structs.replace(before, **changes)
        try:
            self._resolved = resolve(self._custom.given, self._env, self._custom)
        except TrimtabError:
            self._custom.given, self._custom.agent = before, agent
            raise
        self._given = self._custom.given
        return self.current


class LimitSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `limits`. `deadline` is in seconds."""

    max_tokens: int | None = None
    max_budget_usd: float | None = None
    max_ai_credits: float | None = None
    max_turns: int | None = None
    max_autopilot_continues: int | None = None
    max_repeats: int | None = None
    deadline: float | None = None


class CompactionSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `compaction`, in the words of `Thresholds`."""

    background: float = Thresholds().background
    exhausted: float = Thresholds().exhausted
    history: Literal["summarized", "verbatim", "cache"] = "summarized"
    title: bool = True


RETRY = RetryPolicy()
OPTIONS = (
    Option("model", "--model", setting="model"),
    Option("effort", "--effort", setting="effortLevel"),
    Option("runtime", "--agent-runtime"),
    Option("offline", "--offline", "COPILOT_OFFLINE", default=False),
    Option("auto_commit", "--no-auto-commit", setting="host.autoCommit.enabled", default=True),
    Option("sandbox", "--sandbox", setting="sandbox.enabled", default=False),
    Option("limits.max_tokens", "--max-tokens", setting="limits.maxTokens"),
    Option("limits.max_usd", "--max-budget-usd", setting="limits.maxBudgetUsd"),
    Option("limits.max_turns", "--max-turns", setting="limits.maxTurns"),
    Option("limits.deadline", "--deadline", setting="limits.deadline"),
    Option(
        "limits.max_continues",
        "--max-autopilot-continues",
        setting="limits.maxAutopilotContinues",
        default=DEFAULT_CONTINUES,
    ),
    Option("limits.max_repeats", "--max-repeats", setting="limits.maxRepeats"),
    Option("limits.retries", "", "TRIMTAB_RETRIES", default=RETRY.retries),
    Option("limits.retry_delay", "", "TRIMTAB_RETRY_DELAY_SECONDS", default=RETRY.delay),
    Option(
        "limits.max_retry_delay", "", "TRIMTAB_RETRY_MAX_DELAY_SECONDS", default=RETRY.max_delay
    ),
    Option("large_output.limit", "", "COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES", default=20 * 1024),
)


def resolve(given: SessionOptions, env: Mapping[str, str], custom: Customizations) -> Resolved:
    """Fill in the options that were not given. Raises `UsageError` and `ConfigurationError`."""
    if given.mode == "autopilot":
        custom.require_feature("AUTOPILOT_MODE", "Autopilot")
    adopted = custom.adopt_agent(given)
    settings: Mapping[str, Chosen] = {}
    if custom.has_settings:
        settings = read_settings(custom.settings.values)
        if any(name.partition(".")[0] == "host" for name in custom.settings.values):
            from trimtab.config.host_settings import is_enabled

            commits = is_enabled(custom.settings, "autoCommit.enabled")
            settings = {**settings, "auto_commit": (commits, "host.autoCommit.enabled")}
        if "model" in settings and given.provider is not None:
            settings = {**settings, "model": (None, "")}  # a client's service has its own models
    sources: dict[str, str] = {}
    changes: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        value, source = choose(option, given, adopted, env, settings)
        if source == "agent" and custom.agent is not None:
            source = f"agent {custom.agent.name}"
        sources[option.path] = source
        group, _, field = option.path.rpartition(".")
        if value != get(adopted, option.path):
            changes.setdefault(group, {})[field] = value
    if "sandbox" in settings and adopted.sandbox_settings is None:
        from trimtab.agents.sandbox import read_settings as read_sandbox

        sandbox = read_sandbox(custom.settings.values["sandbox"])
        changes.setdefault("", {})["sandbox_settings"] = sandbox
    if "compaction" in custom_values(custom) and given.compaction == Thresholds():
        compaction = read_compaction(custom.settings.values["compaction"])
        changes.setdefault("", {})["compaction"] = compaction
    top = changes.pop("", {})
    top |= {
        group: msgspec.structs.replace(getattr(adopted, group), **fields)
        for group, fields in changes.items()
    }
    return Resolved(msgspec.structs.replace(adopted, **top), sources)


def custom_values(custom: Customizations) -> Mapping[str, Any]:
    """Return the settings; empty without reading anything if there is no file with settings."""
    return custom.settings.values if custom.has_settings else {}


def read_compaction(value: Any) -> Thresholds:
    """Return the setting `compaction`. Raises `ConfigurationError`."""
    try:
        found = msgspec.convert(value, CompactionSettings)
    except msgspec.ValidationError as error:
        from trimtab.config.invalid_settings import refuse

        raise refuse("compaction", CompactionSettings, error) from None
    if not 0 < found.background <= found.exhausted <= 1:
        raise ConfigurationError(
            "The setting `compaction` is invalid: background and exhausted are shares of the "
            "window, such as 0.8 and 0.95; correct it."
        )
    return Thresholds(**{name: getattr(found, name) for name in found.__struct_fields__})


def choose(
    option: Option,
    given: SessionOptions,
    adopted: SessionOptions,
    env: Mapping[str, str],
    settings: Mapping[str, Chosen],
) -> Chosen:
    """Return the value of one option and its source."""
    if (value := get(given, option.path)) is not None:
        return value, option.flag or "client"
    if option.variable and (text := env.get(option.variable)) is not None:
        value = PARSERS[type(option.default)](option.variable, text)
        if value is not None:
            return value, option.variable
    if (value := get(adopted, option.path)) is not None:
        return value, "agent"
    value, name = settings.get(option.path, (None, ""))
    if value is not None:
        return value, f"setting {name}"
    return option.default, "default"


def get(options: SessionOptions, path: str) -> Any:
    group, _, field = path.rpartition(".")
    return getattr(getattr(options, group) if group else options, field)


def read_settings(values: Mapping[str, Any]) -> dict[str, Chosen]:
    """Return the values that settings give options, by path. Raises `ConfigurationError`."""
    found: dict[str, Chosen] = {}
    for path, name in (("model", "model"), ("effort", "effortLevel")):
        if isinstance(value := values.get(name), str) and value:
            found[path] = value, name
    if "sandbox" in values:
        enabled = values["sandbox"].get("enabled") if isinstance(values["sandbox"], dict) else None
        found["sandbox"] = enabled if isinstance(enabled, bool) else None, "sandbox.enabled"
    if "limits" not in values:
        return found
    try:
        limits = msgspec.convert(values["limits"], LimitSettings)
    except msgspec.ValidationError as error:
        from trimtab.config.invalid_settings import refuse

        raise refuse("limits", LimitSettings, error) from None
    return found | {
        "limits.max_tokens": (limits.max_tokens, "limits.maxTokens"),
        "limits.max_turns": (limits.max_turns, "limits.maxTurns"),
        "limits.deadline": (limits.deadline, "limits.deadline"),
        "limits.max_usd": (
            smallest_budget(limits.max_budget_usd, limits.max_ai_credits),
            "limits.maxBudgetUsd",
        ),
        "limits.max_continues": (limits.max_autopilot_continues, "limits.maxAutopilotContinues"),
        "limits.max_repeats": (limits.max_repeats, "limits.maxRepeats"),
    }


def parse_number(variable: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise UsageError(f"{variable} is {text!r}, not a number; set it to one or unset it.")
    return number


def parse_count(variable: str, text: str) -> int:
    return int(parse_number(variable, text))


def parse_switch(_variable: str, text: str) -> bool | None:
    return True if text.lower() in ("1", "true") else None


PARSERS: Mapping[type, Callable[[str, str], Any]] = {
    float: parse_number,
    int: parse_count,
    bool: parse_switch,
}
