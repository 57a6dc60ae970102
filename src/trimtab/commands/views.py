"""Slash commands that show something of a session and change nothing."""

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.system_prompt import measure_parts
from trimtab.commands.queue import shorten
from trimtab.commands.session_views import describe_diff, describe_skills
from trimtab.contracts.text import count
from trimtab.customize.overview import survey
from trimtab.loop.ledger import Ledger
from trimtab.providers.meter import ContextMeter
from trimtab.providers.windows import DEFAULT
from trimtab.undo.rewind import list_points
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.commands.table import Invocation
    from trimtab.contracts.customization import Customization


async def show_context(invocation: "Invocation") -> str:
    """Return how many tokens of the context window each part of the request uses."""
    meter = ContextMeter(invocation.run.agent.model.name)
    session = invocation.run.session
    found = invocation.run.measured or meter.measure(
        session.conversation, invocation.run.agent.specs, session.prompt_tokens
    )
    limit = invocation.run.agent.model.prompt_limit or DEFAULT
    rows = [
        ("system prompt", found.system),
        ("tool definitions", found.tools),
        ("conversation", found.conversation),
        ("free", max(0, limit - found.total)),
    ]
    lines = [f"{name:<18}{count:>10,}  {count / limit:>5.1%}" for name, count in rows]
    title = f"{invocation.run.agent.model.name}: {found.total:,} of {limit:,} tokens"
    wire = f"{'on the wire':<18}{found.size:>10,}  bytes"
    return "\n".join((title, *lines, wire, *_list_parts(invocation)))


def _list_parts(invocation: "Invocation") -> list[str]:
    """Return a line with the tokens of each section and tool, as `trimtab prompt show` does."""
    prompt, run = invocation.live.controls.prompt, invocation.run
    parts = measure_parts(run.agent.model.name, prompt.parts, run.agent.specs)
    return [f"  {part.tokens:>8,}  {part.name}" for part in parts]


async def show_customizations(invocation: "Invocation") -> str:
    """Return the customizations the session loads, as `trimtab customizations` lists them."""
    controls = invocation.live.controls
    custom = controls.setup.customizations
    if custom is None:
        return "This session loads no customizations."
    entries = survey(custom.env, controls.options).entries
    lines = [
        f"{entry.kind} {entry.name} ({entry.source})" + _unused(entry)
        for entry in entries
        if invocation.arguments in ("", entry.kind)
    ]
    return "\n".join(lines) or "No customizations."


def _unused(entry: "Customization") -> str:
    used = entry.enabled and entry.trusted and not entry.overridden_by
    return "" if used else " not used"


async def show_instructions(invocation: "Invocation") -> str:
    return await show_customizations(msgspec.structs.replace(invocation, arguments="instruction"))


async def show_usage(invocation: "Invocation") -> str:
    """Return the tokens and cost of each model, the rest of the budget, time and changed lines."""
    live = invocation.live
    usage, changes = live.projections.usage, live.projections.changes
    lines = []
    for model, spent in usage.models.items():
        cached = f" ({spent.cache_read_tokens:,} cached)" if spent.cache_read_tokens else ""
        lines.append(
            f"{model}: {count(spent.requests, 'call')}, "
            f"{count(spent.input_tokens or 0, 'token')} in{cached}, "
            f"{spent.output_tokens or 0:,} out, {_money(spent.cost_usd)}"
        )
    if not lines:
        return "No model calls yet."
    if usage.premium_requests:
        lines.append(f"premium requests: {usage.premium_requests:g}")
    budget = invocation.run.agent.budget
    if isinstance(budget, Ledger):
        lines.append(f"budget: {budget.describe()}")
    lines.append(f"model time: {usage.api_duration_ms / 1000:.1f} s")
    lines.append(
        f"changes: +{changes.lines_added:,} -{changes.lines_removed:,} in "
        f"{count(len(changes.files), 'file')}"
    )
    return "\n".join(lines)


def _money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"


async def show_history(invocation: "Invocation") -> str:
    """Return the prompts of this session that contain all words, with their times."""
    words = invocation.arguments.lower().split()
    lines = [
        f"{point.turn:>3}  {point.timestamp[11:16]}  {shorten(point.text)}"
        for point in list_points(invocation.live.folder.events)
        if all(word in point.text.lower() for word in words)
    ]
    return "\n".join(lines) or "No prompt contains these words."


async def show_skills(invocation: "Invocation") -> str:
    return describe_skills(invocation.live)


async def show_diff(invocation: "Invocation") -> str:
    return describe_diff(invocation.live)


async def show_version(_: "Invocation") -> str:
    return f"Trimtab {__version__}"


async def show_changelog(_: "Invocation") -> str:
    """Return the changes of the newest version."""
    text = files("trimtab").joinpath("changelog.json").read_text("utf-8")
    version, groups = next(iter(json.loads(text).items()))
    lines = [f"- {line}" for entries in groups.values() for line in entries]
    return "\n".join((version, *lines))
