"""Commands a person types as a prompt: `/context`, `/limits tokens 50000`, `/model ID`."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.run import Run

if TYPE_CHECKING:
    from trimtab.contracts.customization import Customization
    from trimtab.contracts.options import LimitOptions
    from trimtab.runtime.live import LiveSession


class Asked(msgspec.Struct, frozen=True):
    """A command in its session; `rest` is what follows its name."""

    live: "LiveSession"
    run: Run
    rest: str


Answer = Callable[[Asked], Awaitable[str]]


class SlashCommand(msgspec.Struct, frozen=True):
    usage: str
    help: str
    answer: Answer


async def answer_command(live: "LiveSession", run: Run, text: str) -> str | None:
    """What a command says; None if the text is none."""
    name, _, rest = text[1:].partition(" ")
    command = COMMANDS.get(name.strip())
    if command is None:
        return None
    try:
        return await command.answer(Asked(live, run, rest.strip()))
    except TrimtabError as error:
        return error.message


async def show_context(asked: Asked) -> str:
    """How full the window is, by what fills it."""
    from trimtab.providers.meter import ContextMeter
    from trimtab.providers.windows import DEFAULT

    meter = ContextMeter(asked.run.agent.model.name)
    session = asked.run.session
    found = asked.run.measured or meter.measure(
        session.conversation, asked.run.agent.specs, session.prompt_tokens
    )
    limit = asked.run.agent.model.prompt_limit or DEFAULT
    rows = [
        ("system prompt", found.system),
        ("tool definitions", found.tools),
        ("conversation", found.conversation),
        ("free", max(0, limit - found.total)),
    ]
    lines = [f"{name:<18}{count:>10,}  {count / limit:>5.1%}" for name, count in rows]
    title = f"{asked.run.agent.model.name}: {found.total:,} of {limit:,} tokens"
    wire = f"{'on the wire':<18}{found.size:>10,}  bytes"
    return "\n".join((title, *lines, wire, *_list_parts(asked)))


def _list_parts(asked: Asked) -> list[str]:
    """What each section and tool costs, by the count `trimtab prompt show` makes."""
    from trimtab.agents.system_prompt import measure_parts

    prompt, run = asked.live.controls.prompt, asked.run
    parts = measure_parts(run.agent.model.name, prompt.parts, run.agent.specs)
    return [f"  {part.tokens:>8,}  {part.name}" for part in parts]


async def show_customizations(asked: Asked) -> str:
    """What the session loads, as `trimtab customizations` lists it."""
    from trimtab.customize.overview import survey

    controls = asked.live.controls
    custom = controls.setup.customizations
    if custom is None:
        return "This session loads no customizations."
    entries = survey(custom.env, controls.options).entries
    shown = [one for one in entries if asked.rest in ("", one.kind)]
    lines = [f"{one.kind} {one.name} ({one.source})" + _unused(one) for one in shown]
    return "\n".join(lines) or "Nothing here customizes the session."


def _unused(entry: "Customization") -> str:
    used = entry.enabled and entry.trusted and not entry.overridden_by
    return "" if used else " not used"


async def show_usage(asked: Asked) -> str:
    spent = asked.live.projections.usage
    lines = [
        f"{model}: {one.requests} calls, {one.input_tokens or 0:,} tokens in, "
        f"{one.output_tokens or 0:,} out, {_money(one.cost_usd)}"
        for model, one in spent.models.items()
    ]
    return "\n".join(lines) or "Nothing was spent yet."


async def change_limits(asked: Asked) -> str:
    controls = asked.live.controls
    if asked.rest:
        controls.set_limits(read_limits(asked.rest, controls.options.limits))
    limits = controls.options.limits
    rows = [
        ("tokens", limits.max_tokens),
        ("usd", limits.max_usd),
        ("turns", limits.max_turns),
        ("continues", limits.continues),
    ]
    return "\n".join(f"{name}: {'no limit' if value is None else value}" for name, value in rows)


def read_limits(text: str, before: "LimitOptions") -> "LimitOptions":
    """`tokens 5000 usd 2.50 credits 100 turns 20 continues 3`; `off` takes a limit away."""
    from trimtab.contracts.provider import CREDIT_USD

    words = text.replace("=", " ").split()
    if len(words) % 2:
        raise UsageError(f"{text!r} is not a list of limits; write /limits {LIMITS}.")
    changes: dict[str, float | int | None] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in LIMIT_FIELDS:
            raise UsageError(f"There is no limit {name!r}; write /limits {LIMITS}.")
        number: float | None = None
        if value != "off":
            try:
                number = float(value)
            except ValueError:
                number = -1.0
            if not 0 <= number < float("inf"):
                raise UsageError(f"{value!r} is no limit; write a number, or off.")
        field = LIMIT_FIELDS[name]
        if number is not None:
            number = number * CREDIT_USD if name == "credits" else number
            changes[field] = number if field == "max_usd" else int(number)
        else:
            changes[field] = None
    return msgspec.structs.replace(before, **changes)


async def compact(asked: Asked) -> str:
    compaction = asked.live.controls.agent.parts.compaction
    if len(asked.run.session.conversation.messages) < 2:
        return "There is nothing to summarise yet."
    outcome = await compaction.compact(asked.run, "manual", asked.rest)
    return f"{outcome.messages_removed} messages ({outcome.tokens_removed:,} tokens) summarised."


async def change_model(asked: Asked) -> str:
    if asked.rest:
        await asked.live.controls.switch_model(asked.rest)
    return f"The model is {asked.run.agent.model.name}."


async def change_mode(asked: Asked) -> str:
    if asked.rest:
        if asked.rest not in MODES:
            raise UsageError(f"There is no mode {asked.rest!r}; write {', '.join(MODES)}.")
        asked.live.controls.set_mode(asked.rest)  # type: ignore[arg-type]
    return f"The mode is {asked.run.agent.mode}."


async def show_help(_: Asked) -> str:
    return "\n".join(f"/{one.usage:<34}{one.help}" for one in COMMANDS.values())


def _money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"


MODES = ("interactive", "plan", "autopilot")
LIMITS = "[tokens N] [usd N] [credits N] [turns N] [continues N]"
LIMIT_FIELDS = {
    "tokens": "max_tokens",
    "usd": "max_usd",
    "credits": "max_usd",
    "turns": "max_turns",
    "continues": "max_continues",
}

COMMANDS = {
    "help": SlashCommand("help", "These commands.", show_help),
    "context": SlashCommand("context", "How full the model's window is.", show_context),
    "customizations": SlashCommand(
        "customizations [KIND]", "What people wrote for the agent here.", show_customizations
    ),
    "usage": SlashCommand("usage", "What was spent, by model.", show_usage),
    "limits": SlashCommand("limits [tokens N] [usd N] …", "Show or set limits.", change_limits),
    "compact": SlashCommand("compact [WORDS]", "Summarise the conversation now.", compact),
    "model": SlashCommand("model [ID]", "Show or change the model.", change_model),
    "mode": SlashCommand("mode [NAME]", "Show or change the mode.", change_mode),
}
