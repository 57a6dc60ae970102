"""`trimtab prompt`: shows what would be sent to the model, and compares two prompts."""

import os
from difflib import unified_diff
from typing import Any

import msgspec

from trimtab.cli.command_parser import Arguments, CommandParser, chosen_folder
from trimtab.cli.event_loop import run_async
from trimtab.cli.inputs import split
from trimtab.cli.prompt_preview import PromptPreview, preview_prompt
from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import CustomizationOptions, SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.runtime.runtime import Runtime

MODES = ("interactive", "plan", "autopilot")


class PromptCase(msgspec.Struct, frozen=True, kw_only=True):
    """The agent, model, mode and tools for which a prompt is built."""

    cwd: str
    trusted: bool = False
    agent: str | None = None
    model: str | None = None
    mode: str = "interactive"
    instructions: bool = True
    available: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions()
    show = actions.add("show", "show the system prompt, the tools and the first message, by part")
    show.add_argument("prompt", nargs="?", default="", metavar="PROMPT")
    show.add_argument("--agent", metavar="NAME", help="as this agent")
    show.add_argument("--model", metavar="ID", help="for this model")
    show.add_argument("--mode", choices=MODES, default="interactive", help="in this mode")
    show.add_argument("--no-custom-instructions", action="store_true", help="load no instructions")
    for name, effect in (("--available-tools", "offer only"), ("--excluded-tools", "do not offer")):
        show.add_argument(name, action="append", metavar="NAMES", help=f"{effect} these tools")
    diff = actions.add("diff", "show how two prompts differ")
    diff.epilog = (
        "A and B are default, agent:NAME, model:ID, mode:MODE or no-instructions, or several "
        "joined with +."
    )
    diff.add_argument("first", metavar="A")
    diff.add_argument("second", metavar="B")
    for part in (show, diff):
        part.add_argument("--trust-folder", action="store_true", help="trust this folder")
        part.add_json()
        part.add_folder()


def run(args: Arguments) -> int:
    base = PromptCase(cwd=chosen_folder(args), trusted=args.trust_folder)
    if args.action == "diff":
        left = preview(read_case(args.first, base))
        right = preview(read_case(args.second, base))
        print_difference((args.first, left), (args.second, right), as_json=args.json)
        return 0
    available = args.available_tools
    case = msgspec.structs.replace(
        base,
        agent=args.agent,
        model=args.model,
        mode=args.mode,
        instructions=not args.no_custom_instructions,
        available=None if available is None else split(available),
        excluded=split(args.excluded_tools or []),
    )
    shown = preview(case, args.prompt)
    if args.json:
        print_json(describe(shown))
    else:
        print(render(shown))
    return 0


def read_case(text: str, base: PromptCase) -> PromptCase:
    """Parse `agent:explore+model:gpt-5`, `no-instructions` or `default`."""
    changes: dict[str, Any] = {}
    for word in text.split("+"):
        name, colon, value = word.partition(":")
        if word == "no-instructions":
            changes["instructions"] = False
        elif colon and value and name in ("agent", "model", "mode"):
            changes[name] = value
        elif word != "default":
            raise UsageError(
                f"{word!r} does not describe a prompt; see `trimtab prompt diff --help`."
            )
    return msgspec.structs.replace(base, **changes)


def preview(case: PromptCase, text: str = "") -> PromptPreview:
    if case.mode not in MODES:
        raise UsageError(f"There is no mode {case.mode!r}; choose {', '.join(MODES)}.")
    options = SessionOptions(
        cwd=case.cwd,
        model=case.model,
        mode=case.mode,  # type: ignore[arg-type]
        instructions="load" if case.instructions else "skip",
        trust_folder=case.trusted,
        available_tools=case.available,
        excluded_tools=case.excluded,
        customize=CustomizationOptions(agent=case.agent),
    )
    return run_async(preview_prompt(Runtime(env=os.environ), options, text))


def describe(shown: PromptPreview) -> dict[str, Any]:
    """Return a prompt as JSON."""
    parts = shown.parts
    return {
        "model": shown.model,
        "promptLimit": shown.limit,
        "tokens": sum(part.tokens for part in parts),
        "parts": [{"name": part.name, "tokens": part.tokens} for part in parts],
        "leftOut": list(shown.system.left_out),
        "system": shown.system.text,
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in shown.tools
        ],
        "user": shown.user,
    }


def render(shown: PromptPreview) -> str:
    """Return a prompt as text: the parts as they are sent, then the tokens of each."""
    texts = ["# system", shown.system.text, "# tools", *(tool.name for tool in shown.tools)]
    if shown.user:
        texts += ["# user", shown.user]
    parts = shown.parts
    total = sum(part.tokens for part in parts)
    rows = [f"{part.tokens:>7,}  {part.name}" for part in parts]
    rows.append(f"{total:>7,}  of {shown.limit:,} ({shown.model})")
    if shown.system.left_out:
        rows.append(f"left out for lack of room: {', '.join(shown.system.left_out)}")
    return neutralise("\n".join((*texts, "# tokens", *rows)))


def print_difference(
    left: tuple[str, PromptPreview], right: tuple[str, PromptPreview], *, as_json: bool
) -> None:
    """Print the lines, tools and tokens in which two prompts differ."""
    before, after = _lines(left[1]), _lines(right[1])
    lines = list(unified_diff(before, after, left[0], right[0], lineterm="", n=1))
    old, new = ({part.name: part.tokens for part in shown.parts} for _, shown in (left, right))
    changed = {
        name: (old.get(name, 0), new.get(name, 0))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    }
    if as_json:
        tokens = {name: {"before": was, "after": now} for name, (was, now) in changed.items()}
        print_json({"diff": lines, "tokens": tokens})
        return
    rows = [f"{was:>7,} → {now:>7,}  {name}" for name, (was, now) in changed.items()]
    rows.append(f"{sum(old.values()):>7,} → {sum(new.values()):>7,}  together")
    print(neutralise("\n".join((*lines, "# tokens", *rows))))


def _lines(shown: PromptPreview) -> list[str]:
    return [*shown.system.text.split("\n"), *(f"tool {tool.name}" for tool in shown.tools)]
