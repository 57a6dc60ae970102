"""How customizations are shown: as a list for people, as JSON for programs."""

import os
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from trimtab.cli.customizations.arguments import Given
from trimtab.cli.streams import print_json
from trimtab.contracts.customization import Customization, Problem
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import count, neutralise
from trimtab.customize.overview import Overview, survey

MODEL = "gpt-5"
"""Whose tokens are counted; models differ by a few percent."""


def survey_here(given: Given) -> Overview:
    return survey(os.environ, SessionOptions(cwd=given.cwd))


def print_entries(overview: Overview, kinds: Collection[str] | None, *, as_json: bool) -> None:
    """All entries, or those of some kinds."""
    entries = [one for one in overview.entries if kinds is None or one.kind in kinds]
    problems = [
        problem
        for kind, found in overview.problems.items()
        if kinds is None or kind in kinds
        for problem in found
    ]
    if as_json:
        shown = {
            "trusted": overview.trusted,
            "customizations": [describe(one) for one in entries],
            "problems": [describe_problem(one) for one in problems],
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
        print("Nothing here customizes a session.")
    if problems:
        print("\nproblems")
        print_problems(problems)
    if not overview.trusted and any(not entry.trusted for entry in entries):
        print("\nThis folder is not trusted: what is marked so is not used. See --trust-folder.")


def print_explanation(entries: Sequence[Customization], *, as_json: bool) -> None:
    """Everything that is known about some entries."""
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
        for field, said in entry.fields.items():
            print(neutralise(f"    {field}: {said}"))
        rest = [one for one in entry.problems if one.field not in entry.fields]
        print_problems(rest, entry.file)


def print_problems(problems: Sequence[Problem], file: str = "") -> None:
    """A line each; the file is named where it is not `file`, under which they stand."""
    for problem in problems:
        mark = "·" if problem.note else "✗"
        line = f" (line {problem.line})" if problem.line else ""
        where = f"{problem.file}: " if problem.file != file else ""
        print(neutralise(f"    {mark} {where}{problem.message}{line}"))


def describe_state(entry: Customization) -> str:
    """Whether an entry is used, and why not."""
    if not entry.trusted:
        return f"not used: {entry.why or 'the folder is not trusted'}"
    if entry.overridden_by:
        return f"not used: {entry.overridden_by} wins, because {entry.why}"
    if entry.enabled:
        return "used"
    return f"not used: {entry.why}" if entry.why else "disabled"


def describe(entry: Customization) -> dict[str, Any]:
    """An entry for programs."""
    described = msgspec.to_builtins(entry)
    del described["prompt"]
    described["tokens"] = count_tokens(entry)
    described["problems"] = [describe_problem(one) for one in entry.problems]
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
    """What an entry costs in every prompt of a session."""
    if not entry.prompt or not entry.enabled or not entry.trusted:
        return 0
    from trimtab.providers.tokens import counter_for

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
