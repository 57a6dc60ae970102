"""Slash commands that choose the model, mode, agent, limits and settings."""

import difflib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.commands.agent_choice import list_agents, select_agent
from trimtab.commands.session import require_person
from trimtab.config.edit import change_field
from trimtab.config.paths import Home, find_home
from trimtab.config.settings import Settings, find_value, has_type, known_settings
from trimtab.contracts.errors import UsageError
from trimtab.contracts.provider import CREDIT_USD

if TYPE_CHECKING:
    from trimtab.commands.table import Handler, Invocation
    from trimtab.contracts.options import LimitOptions
    from trimtab.contracts.run import Mode
    from trimtab.runtime.live import LiveSession

MODES = ("interactive", "plan", "autopilot")
LIMITS = "[tokens N] [usd N] [credits N] [turns N] [continues N]"
LIMIT_FIELDS = {
    "tokens": "max_tokens",
    "usd": "max_usd",
    "credits": "max_usd",
    "turns": "max_turns",
    "continues": "max_continues",
}
SETTINGS = "[NAME [VALUE | default]]"


async def change_limits(invocation: "Invocation") -> str:
    controls = invocation.live.controls
    if invocation.arguments:
        controls.set_limits(read_limits(invocation.arguments, controls.options.limits))
    limits = controls.options.limits
    rows = [
        ("tokens", limits.max_tokens),
        ("usd", limits.max_usd),
        ("turns", limits.max_turns),
        ("continues", limits.continues),
    ]
    return "\n".join(f"{name}: {'no limit' if value is None else value}" for name, value in rows)


def read_limits(text: str, before: "LimitOptions") -> "LimitOptions":
    """Parse `tokens 5000 usd 2.50 credits 100 turns 20 continues 3`; `off` removes a limit."""
    words = text.replace("=", " ").split()
    if len(words) % 2:
        raise UsageError(f"{text!r} is not a list of names and values; write /limits {LIMITS}.")
    changes: dict[str, float | int | None] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in LIMIT_FIELDS:
            raise UsageError(f"Unknown limit {name!r}; write /limits {LIMITS}.")
        number: float | None = None
        if value != "off":
            try:
                number = float(value)
            except ValueError:
                number = -1.0
            if not 0 <= number < float("inf"):
                raise UsageError(f"{value!r} is not a valid limit; write a number or off.")
        field = LIMIT_FIELDS[name]
        if number is not None:
            number = number * CREDIT_USD if name == "credits" else number
            changes[field] = number if field == "max_usd" else int(number)
        else:
            changes[field] = None
    return msgspec.structs.replace(before, **changes)


async def change_model(invocation: "Invocation") -> str:
    if not invocation.arguments:
        return f"The model is {invocation.run.agent.model.name}."
    checked = await invocation.live.controls.check_model(invocation.arguments)
    await invocation.live.controls.switch_model(invocation.arguments)
    note = "" if checked else " Its service does not list its models, so the name is unchecked."
    return f"The model is {invocation.run.agent.model.name}.{note}"


async def change_effort(invocation: "Invocation") -> str:
    """Show or set the reasoning effort of the current model."""
    controls, model = invocation.live.controls, invocation.run.agent.model.name
    levels = await controls.list_efforts()
    level = invocation.arguments
    if level and level != "default" and levels and level not in levels:
        raise UsageError(f"{model} has no effort {level!r}; use one of {', '.join(levels)}.")
    if level:
        controls.set_effort(None if level == "default" else level)
    known = f" It has {', '.join(levels)}." if levels else ""
    return f"The effort of {model} is {controls.effort or 'its default'}.{known}"


def enter_mode(mode: "Mode") -> "Handler":
    """Return the command that switches to a mode; a text after it is sent as a prompt."""

    async def enter(invocation: "Invocation") -> str:
        invocation.live.controls.set_mode(mode)
        if invocation.arguments:
            invocation.live.send(invocation.arguments)
        return f"The mode is {mode}."

    return enter


async def change_mode(invocation: "Invocation") -> str:
    if invocation.arguments:
        if invocation.arguments not in MODES:
            raise UsageError(
                f"Unknown mode {invocation.arguments!r}; use one of {', '.join(MODES)}."
            )
        invocation.live.controls.set_mode(invocation.arguments)  # type: ignore[arg-type]
    return f"The mode is {invocation.run.agent.mode}."


async def change_agent(invocation: "Invocation") -> str:
    """List the agents to work as, work as one of them, or as the default agent again."""
    live, name = invocation.live, invocation.arguments
    if name:
        await select_agent(live, None if name == "default" else name)
    custom = live.controls.setup.customizations
    current = custom.agent.name if custom is not None and custom.agent is not None else "default"
    if name:
        return f"The agent is {current}."
    rows = [f"{agent.name}  {agent.description}" for agent in list_agents(live)]
    return "\n".join((f"The agent is {current}.", *rows))


async def change_settings(invocation: "Invocation") -> str:
    """Show the settings that are set, or one of them, or change one in the person's file."""
    live = invocation.live
    name, _, text = invocation.arguments.partition(" ")
    found = list_settings(live)
    if not name:
        rows = [
            f"{key}: {show_setting(value)}" for key, value in found.items() if value is not None
        ]
        return "\n".join((*rows, f"Write /settings {SETTINGS}."))
    if name not in found:
        similar = difflib.get_close_matches(name, found, 2)
        advice = f"did you mean {' or '.join(similar)}?" if similar else "see `/settings`."
        raise UsageError(f"Unknown setting {name!r}; {advice}")
    if not text.strip():
        return f"{name}: {show_setting(found[name])}"
    require_person(invocation, "another settings.json")
    value = None if text.strip() == "default" else read_setting(name, text.strip())
    path = _home(live).settings
    change_field(path, name, value)
    live.controls.reload()
    now = list_settings(live)[name]
    if now != value:
        return f"{name} is still {show_setting(now)}: another settings file or a group sets it."
    return (
        f"{name} is now {show_setting(value)}; it is saved in {path}. Settings that are read at "
        "the start take effect in the next session."
    )


def list_settings(live: "LiveSession") -> dict[str, Any]:
    """Return every known setting with its value; None if it is not set."""
    custom = live.controls.setup.customizations
    settings = Settings(_home(live)) if custom is None else custom.settings
    anywhere, own = known_settings()
    names = sorted({*anywhere, *own}, key=str.lower)
    return {name: find_value(settings.values, name)[1] for name in names}


def read_setting(name: str, text: str) -> Any:
    """Return the value that a person wrote for a setting. Raises `UsageError`."""
    anywhere, own = known_settings()
    kind = {**anywhere, **own}[name]
    value: Any = text
    if kind == "strings" and not text.startswith("["):
        value = text.split()
    elif kind != "string":
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    if not has_type(kind, value):
        raise UsageError(f"{name} needs {KINDS[kind]}; {text!r} is not one.")
    return value


def show_setting(value: Any) -> str:
    """Return the value of a setting as a person would type it."""
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _home(live: "LiveSession") -> Home:
    return live.controls.setup.home or find_home(live.controls.setup.env)


KINDS = {
    "boolean": "true or false",
    "number": "a number",
    "string": "a text",
    "strings": "a list of texts",
    "object": "an object in JSON",
}
"""Each type of setting in words."""
