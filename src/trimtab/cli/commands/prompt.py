"""`trimtab prompt`: what would be sent to the model, and what makes it differ."""

import os
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError

if TYPE_CHECKING:
    from trimtab.runtime.prompt_preview import PromptPreview

HELP = "show what would be sent to the model, by part; compare two prompts"
USAGE = """\
Usage: trimtab prompt show [--agent NAME] [--model ID] [--mode MODE] [--no-custom-instructions]
                           [--available-tools LIST] [--excluded-tools LIST] [--trust-folder]
                           [--json] [-C DIR] [PROMPT]
                              the system prompt, the tools and the first message, with tokens
       trimtab prompt diff A B [--trust-folder] [--json] [-C DIR]
                              what differs between two: default, agent:NAME, model:ID, mode:MODE,
                              no-instructions; several with + between them"""
MODES = ("interactive", "plan", "autopilot")
_VALUES = ("--agent", "--model", "--mode")
_LISTS = ("--available-tools", "--excluded-tools")
_SWITCHES = ("--no-custom-instructions", "--trust-folder")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a prompt is shown."""

    cwd: str
    trusted: bool = False
    agent: str | None = None
    model: str | None = None
    mode: str = "interactive"
    instructions: bool = True
    available: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments

    given = read_arguments(argv, USAGE, values=_VALUES, lists=_LISTS, switches=_SWITCHES)
    base = Wanted(cwd=given.cwd, trusted="--trust-folder" in given.switches)
    match given.words:
        case ["show", *words] if len(words) <= 1:
            wanted = msgspec.structs.replace(
                base,
                agent=given.values.get("--agent"),
                model=given.values.get("--model"),
                mode=given.values.get("--mode", base.mode),
                instructions="--no-custom-instructions" not in given.switches,
                available=_names(given.lists.get("--available-tools")),
                excluded=_names(given.lists.get("--excluded-tools")) or (),
            )
            shown = preview(wanted, words[0] if words else "")
            if given.json:
                print_json(describe(shown))
            else:
                print(write(shown))
        case ["diff", first, second] if not given.values:
            left, right = preview(read_case(first, base)), preview(read_case(second, base))
            compare((first, left), (second, right), as_json=given.json)
        case _:
            raise UsageError(f"`trimtab prompt {' '.join(argv)}` is not known.\n{USAGE}")
    return 0


def read_case(text: str, base: Wanted) -> Wanted:
    """`agent:explore+model:gpt-5`, `no-instructions`, `default`."""
    changes: dict[str, Any] = {}
    for word in text.split("+"):
        name, colon, value = word.partition(":")
        if word == "no-instructions":
            changes["instructions"] = False
        elif colon and value and name in ("agent", "model", "mode"):
            changes[name] = value
        elif word != "default":
            raise UsageError(f"{word!r} names no prompt.\n{USAGE}")
    return msgspec.structs.replace(base, **changes)


def preview(wanted: Wanted, text: str = "") -> "PromptPreview":
    from trimtab.contracts.options import CustomizationOptions, SessionOptions
    from trimtab.runtime.prompt_preview import preview_prompt
    from trimtab.runtime.runtime import Runtime

    if wanted.mode not in MODES:
        raise UsageError(f"There is no mode {wanted.mode!r}; use one of {', '.join(MODES)}.")
    options = SessionOptions(
        cwd=wanted.cwd,
        model=wanted.model,
        mode=wanted.mode,  # type: ignore[arg-type]
        instructions="load" if wanted.instructions else "skip",
        trust_folder=wanted.trusted,
        available_tools=wanted.available,
        excluded_tools=wanted.excluded,
        customize=CustomizationOptions(agent=wanted.agent),
    )
    from trimtab.cli.event_loop import run_async

    return run_async(preview_prompt(Runtime(env=os.environ), options, text))


def _names(lists: list[str] | None) -> tuple[str, ...] | None:
    if lists is None:
        return None
    return tuple(name.strip() for text in lists for name in text.split(",") if name.strip())


def describe(shown: "PromptPreview") -> dict[str, Any]:
    """A prompt for programs."""
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


def write(shown: "PromptPreview") -> str:
    """A prompt for people: the texts as they are sent, then what each part costs."""
    from trimtab.contracts.text import neutralise

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


def compare(
    left: "tuple[str, PromptPreview]", right: "tuple[str, PromptPreview]", *, as_json: bool
) -> None:
    """Print what the second has that the first has not, and the other way round."""
    from difflib import unified_diff

    from trimtab.contracts.text import neutralise

    before, after = _lines(left[1]), _lines(right[1])
    lines = list(unified_diff(before, after, left[0], right[0], lineterm="", n=1))
    costs = [{part.name: part.tokens for part in one.parts} for one in (left[1], right[1])]
    changed = {
        name: (costs[0].get(name, 0), costs[1].get(name, 0))
        for name in {**costs[0], **costs[1]}
        if costs[0].get(name) != costs[1].get(name)
    }
    if as_json:
        tokens = {name: {"before": one, "after": two} for name, (one, two) in changed.items()}
        print_json({"diff": lines, "tokens": tokens})
        return
    rows = [f"{one:>7,} → {two:>7,}  {name}" for name, (one, two) in changed.items()]
    sums = [sum(cost.values()) for cost in costs]
    rows.append(f"{sums[0]:>7,} → {sums[1]:>7,}  together")
    print(neutralise("\n".join((*lines, "# tokens", *rows))))


def _lines(shown: "PromptPreview") -> list[str]:
    return [*shown.system.text.split("\n"), *(f"tool {tool.name}" for tool in shown.tools)]
