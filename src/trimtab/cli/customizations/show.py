"""Prints customizations: as a list for people, as JSON for programs."""

import os
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from trimtab.cli.command_parser import Arguments, chosen_folder
from trimtab.cli.streams import print_json
from trimtab.contracts.customization import Customization, Problem
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import count, neutralise
from trimtab.customize.overview import Overview, survey
from trimtab.providers.tokens import counter_for

MODEL = "gpt-5"
"""The model whose tokenizer counts; others differ by a few percent."""


def survey_folder(args: Arguments) -> Overview:
    """Return the customizations of a session in the folder of `-C`."""
    return survey(os.environ, SessionOptions(cwd=chosen_folder(args)))


def print_entries(overview: Overview, kinds: Collection[str] | None, *, as_json: bool) -> None:
    """Print all entries, or those of some kinds."""
    entries = [entry for entry in overview.entries if kinds is None or entry.kind in kinds]
    problems = [
        problem
        for kind, found in overview.problems.items()
        if kinds is None or kind in kinds
        for problem in found
    ]
    if as_json:
        shown = {
            "trusted": overview.trusted,
            "customizations": [describe(entry) for entry in entries],
            "problems": [describe_problem(problem) for problem in problems],
        }
        print_json(shown)
        return
    kind = ""
    for entry in entries:
        if entry.kind != kind:
            print(f"{chr(10) if kind else ''}{entry.kind}s")
            kind = entry.kind
        print(_line(entry))
        print_problems(entry.problems, entry.file)
    if not entries:
        print(_describe_none(kinds))
    if problems:
        print("\nproblems")
        print_problems(problems)
    if not overview.trusted and any(not entry.trusted for entry in entries):
        print(
            "\nThis folder is not trusted, so its customizations are not used. See --trust-folder."
        )


def _describe_none(kinds: Collection[str] | None) -> str:
    """Return a sentence for a list without entries."""
    if not kinds:
        return "Nothing here customizes a session."
    kind = next(iter(kinds))
    if kind == "mcp-server":
        return "No MCP servers are configured; add one with `trimtab mcp add`."
    return f"No {kind}s are found here."


def print_explanation(entries: Sequence[Customization], *, as_json: bool) -> None:
    """Print everything that is known about some entries."""
    if as_json:
        shown = [describe(entry) for entry in entries]
        print_json(shown)
        return
    for entry in entries:
        print(neutralise(f"{entry.kind} {entry.name}"))
        where = f"{entry.file}:{entry.line}" if entry.line else entry.file
        rows = [
            ("source", entry.source),
            ("file", where),
            ("applies", entry.scope),
            ("about", entry.description),
            ("tokens", str(count_tokens(entry)) if entry.prompt else ""),
            ("state", describe_state(entry)),
        ]
        for label, text in rows:
            if text:
                print(neutralise(f"  {label:<8} {text}"))
        for field, effect in entry.fields.items():
            print(neutralise(f"    {field}: {effect}"))
        rest = [problem for problem in entry.problems if problem.field not in entry.fields]
        print_problems(rest, entry.file)


def print_problems(problems: Sequence[Problem], file: str = "") -> None:
    """Print a line for each problem, with its file unless that is `file`."""
    for problem in problems:
        mark = "·" if problem.note else "✗"
        line = f" (line {problem.line})" if problem.line else ""
        where = f"{problem.file}: " if problem.file != file else ""
        print(neutralise(f"    {mark} {where}{problem.message}{line}"))


def describe_state(entry: Customization) -> str:
    """Return `used`, `disabled`, or the reason why an entry is not used."""
    if not entry.trusted:
        return f"not used: {entry.why or 'the folder is not trusted'}"
    if entry.overridden_by:
        return f"not used: {entry.overridden_by} wins, because {entry.why}"
    if entry.enabled:
        return "used"
    return f"not used: {entry.why}" if entry.why else "disabled"


def describe(entry: Customization) -> dict[str, Any]:
    """Return an entry as JSON."""
    described = msgspec.to_builtins(entry)
    del described["prompt"]
    described["tokens"] = count_tokens(entry)
    described["problems"] = [describe_problem(problem) for problem in entry.problems]
    return {_camel(key): value for key, value in described.items()}


def describe_problem(problem: Problem) -> dict[str, Any]:
    severity = "note" if problem.note else "problem"
    return {
        "file": problem.file,
        "line": problem.line,
        "message": problem.message,
        "severity": severity,
        **({"field": problem.field} if problem.field else {}),
    }


def count_tokens(entry: Customization) -> int:
    """Return the tokens an entry adds to every request of a session."""
    if not entry.prompt or not entry.enabled or not entry.trusted:
        return 0
    return counter_for(MODEL).text(entry.prompt)


def _line(entry: Customization) -> str:
    state = describe_state(entry)
    cost = count_tokens(entry)
    tokens = f", {count(cost, 'token')}" if cost else ""
    scope = f" for {entry.scope}" if entry.kind == "instruction" and entry.scope != "always" else ""
    about = f"  {entry.description}" if entry.description else ""
    used = "" if state == "used" else f" [{state}]"
    text = f"  {entry.name}{scope} ({entry.source}{tokens}){used}{about}"
    return neutralise(text if len(text) <= 160 else text[:159] + "…")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
