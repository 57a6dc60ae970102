"""Commands a person types as a prompt: `/context`, `/limits tokens 50000`, `/model ID`."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import Run
from trimtab.contracts.text import count

if TYPE_CHECKING:
    from trimtab.contracts.customization import Customization
    from trimtab.contracts.events.own import PromptQueued
    from trimtab.contracts.options import LimitOptions
    from trimtab.runtime.live import LiveSession

_COMMAND = re.compile(r"/([A-Za-z?][\w:.-]*)(?:\s+(.*))?", re.DOTALL)
_SHOWN = 100
"""Characters of a queued prompt that are listed."""


class Asked(msgspec.Struct, frozen=True):
    """A command in its session; `rest` is what follows its name."""

    live: "LiveSession"
    run: Run
    rest: str


Answer = Callable[[Asked], Awaitable[str]]


class SlashCommand(msgspec.Struct, frozen=True):
    """One row of the table. Without `answer`, only a conversation in the terminal has it."""

    name: str
    arguments: str
    help: str
    answer: Answer | None = None


async def answer_command(live: "LiveSession", run: Run, text: str) -> str | None:
    """Do what a command says and return its answer; None if the text is not a command.

    Raises `UsageError` for a command that is unknown or wrong.
    """
    found = find_command(live, text)
    if found is None:
        return None
    command, rest = found
    if command.answer is None:
        raise UsageError(f"/{command.name} works only in a conversation in the terminal.")
    return await command.answer(Asked(live, run, rest))


def find_command(live: "LiveSession", text: str) -> tuple[SlashCommand, str] | None:
    """Return a command and what follows its name; None if the text is a prompt.

    Raises `UsageError` for a name nobody knows. A path is not a command, nor is what a skill or a
    client answers.
    """
    if re.match(r"!\S", text):
        raise UsageError(
            "A line that begins with ! runs a command, and only a conversation in the terminal "
            "has that; begin with a blank to send it as a prompt."
        )
    match = _COMMAND.fullmatch(text.strip())
    if match is None or not text.startswith("/"):
        return None
    name, rest = match[1].lower(), (match[2] or "").strip()
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is not None:
        return command, rest
    if match[1] in live.client_commands() or is_skill(live, match[1]):
        return None
    if os.path.exists(f"/{match[1]}"):
        return None
    raise UsageError(describe_unknown(name, [*COMMANDS, *other_names(live)]))


def is_skill(live: "LiveSession", name: str) -> bool:
    """Tell whether a person can call a skill or prompt file by this name.

    Raises `UsageError` for a skill that exists but is disabled or reserved for the model.
    """
    custom = live.controls.setup.customizations
    skill = custom.skills.skills.get(name) if custom is not None else None
    if skill is None:
        return False
    if not skill.enabled:
        raise UsageError(
            f"The skill {name} is disabled; enable it with `trimtab skills enable {name}`."
        )
    if not skill.user_invocable:
        raise UsageError(f"The skill {name} is for the model only; ask for it in words.")
    return True


def other_names(live: "LiveSession") -> Iterator[str]:
    """The names that skills, prompt files and clients answer to."""
    custom = live.controls.setup.customizations
    if custom is not None:
        yield from (skill.name for skill in custom.skills.active if skill.user_invocable)
    yield from live.client_commands()


def describe_unknown(name: str, known: list[str]) -> str:
    import difflib

    near = [f"/{one}" for one in difflib.get_close_matches(name, known, 2)]
    advice = f"did you mean {' or '.join(near)}?" if near else "see /help."
    return f"Unknown command /{name}; {advice} Begin with a blank to send it as a prompt."


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
        f"{model}: {count(one.requests, 'call')}, {count(one.input_tokens or 0, 'token')} in, "
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
    return (
        f"{count(outcome.messages_removed, 'message')} summarised: the conversation went from "
        f"{outcome.tokens_before:,} to {count(outcome.tokens_after, 'token')}."
    )


async def change_model(asked: Asked) -> str:
    if not asked.rest:
        return f"The model is {asked.run.agent.model.name}."
    checked = await asked.live.controls.check_model(asked.rest)
    await asked.live.controls.switch_model(asked.rest)
    remark = "" if checked else " Its service did not list its models, so the name is unchecked."
    return f"The model is {asked.run.agent.model.name}.{remark}"


async def change_mode(asked: Asked) -> str:
    if asked.rest:
        if asked.rest not in MODES:
            raise UsageError(f"There is no mode {asked.rest!r}; write {', '.join(MODES)}.")
        asked.live.controls.set_mode(asked.rest)  # type: ignore[arg-type]
    return f"The mode is {asked.run.agent.mode}."


async def change_queue(asked: Asked) -> str:
    """List the prompts that wait, send those that are held, or drop some."""
    inbox = asked.live.inbox
    action, _, which = asked.rest.partition(" ")
    if action not in ("", "list", "send", "drop"):
        raise UsageError(f"There is no /queue {action}; write /queue {QUEUE}.")
    waiting = [*inbox.held, *inbox.pending]
    if action == "send":
        chosen = choose_prompts(inbox.held, which.strip())
        inbox.release(prompt.message_id for prompt in chosen)
        return f"{count(len(chosen), 'prompt')} sent."
    if action == "drop":
        chosen = choose_prompts(waiting, which.strip())
        for prompt in chosen:
            inbox.withdraw(prompt.message_id, "dropped")
        return f"{count(len(chosen), 'prompt')} dropped."
    if not waiting:
        return "No prompt waits."
    lines = [f"{number:>3}  {_first_line(prompt)}" for number, prompt in enumerate(waiting, 1)]
    return "\n".join((*lines, "Send them with /queue send [N], drop them with /queue drop [N]."))


def choose_prompts(prompts: "list[PromptQueued]", number: str) -> "list[PromptQueued]":
    """All prompts of a list, or the one with a number."""
    if not prompts:
        raise UsageError("No prompt waits; type one.")
    if not number:
        return prompts
    if not number.isdecimal() or not 1 <= int(number) <= len(prompts):
        raise UsageError(f"There is no prompt {number!r}; see /queue for the numbers.")
    return [prompts[int(number) - 1]]


def _first_line(prompt: "PromptQueued") -> str:
    text = " ".join((prompt.display or prompt.text).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


async def undo(asked: Asked) -> str:
    return take_back(asked, "undo")


async def redo(asked: Asked) -> str:
    return take_back(asked, "redo")


def take_back(asked: Asked, action: str) -> str:
    """Take back what the last turn did to files, or the last undo; or show what that would do."""
    from trimtab.runtime.undo_text import describe_plan, summarise_plan
    from trimtab.undo.history import UndoRequest

    if asked.rest not in ("", "preview"):
        raise UsageError(f"There is no /{action} {asked.rest}; write /{action} [preview].")
    history, preview = asked.live.history, asked.rest == "preview"
    plan = (
        history.plan_redo(UndoRequest()) if action == "redo" else history.plan_undo(UndoRequest())
    )
    if not preview:
        plan = history.apply(plan)
    lines = [*describe_plan(plan, history, diffs=preview), *summarise_plan(plan, preview=preview)]
    if not preview and action == "undo":
        lines.append("Take that back with /redo.")
    return "\n".join(lines)


async def show_help(_: Asked) -> str:
    rows = [(f"/{one.name} {one.arguments}".rstrip(), one.help) for one in COMMANDS.values()]
    width = max(len(usage) for usage, _ in rows)
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in (*rows, SHELL))


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

QUEUE = "[list | send [N] | drop [N]]"
SHELL = ("!COMMAND", "Run a command yourself; the model does not see it.")
ALIASES = {"quit": "exit", "new": "clear", "?": "help"}

COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "Show these commands.", show_help),
        SlashCommand("clear", "", "Start a new session; the old one is kept."),
        SlashCommand("compact", "[WORDS]", "Summarise the conversation now.", compact),
        SlashCommand("context", "", "Show how full the model's window is.", show_context),
        SlashCommand(
            "customizations", "[KIND]", "List what people wrote for the agent.", show_customizations
        ),
        SlashCommand("exit", "", "Leave; so does Ctrl-D."),
        SlashCommand("limits", "[tokens N] [usd N] …", "Show or set limits.", change_limits),
        SlashCommand("mode", "[NAME]", "Show or change the mode.", change_mode),
        SlashCommand("model", "[ID]", "Show or change the model.", change_model),
        SlashCommand("queue", QUEUE, "Show, send or drop waiting prompts.", change_queue),
        SlashCommand("redo", "[preview]", "Take back the last undo.", redo),
        SlashCommand("undo", "[preview]", "Take back what the last turn did to files.", undo),
        SlashCommand("usage", "", "Show what was spent, by model.", show_usage),
    )
}
