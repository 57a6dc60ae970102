"""`trimtab simulate`: plays recorded sessions again, and shows what has become different."""

import os
from typing import Literal, NamedTuple

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.contracts.text import count, neutralise
from trimtab.testing.differences import find_differences
from trimtab.testing.scenarios import Outcome, Scenario, find_scenarios, run_all

NEVER = "nothing is expected yet; accept the outcome with --update"


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = (
        "A scenario is a folder with scenario.json, answers (recorded.jsonl, the log of a session, "
        "or answers.yaml), files, and what is expected: expected.jsonl and after. It runs in a "
        "folder of its own, without any service; its commands really run. The exit code is 1 if "
        "something differs."
    )
    parser.add_json()
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="scenarios, or folders of them (default: here)"
    )
    parser.add_argument(
        "--update", action="store_true", help="accept what the scenarios come to now"
    )


def run(args: Arguments) -> int:
    scenarios = find_scenarios(args.paths or ["."])
    results = run_async(simulate(scenarios, update=args.update))
    differing = [name for name, result in results.items() if result.state == "differs"]
    written = [name for name, result in results.items() if result.state == "written"]
    if args.json:
        lines = {name: result.lines for name, result in results.items()}
        print_json({"ok": not differing, "scenarios": lines, "written": written})
        return int(bool(differing))
    for name, result in results.items():
        print(f"{result.state:<8}{name}")
        for line in result.lines:
            print(neutralise(f"        {line}", "transcript"))
    accepted = f", {len(written)} written" if args.update else ""
    print(f"{count(len(results), 'scenario')}, {len(differing)} differ{accepted}")
    return int(bool(differing))


class Result(NamedTuple):
    """The outcome of a scenario, and its differences; `written` ones were accepted."""

    state: Literal["ok", "differs", "written"]
    lines: list[str]


async def simulate(scenarios: list[Scenario], *, update: bool) -> dict[str, Result]:
    """Return the result of each scenario, by name; with `update`, accept differences."""
    results: dict[str, Result] = {}
    async for scenario, outcome in run_all(scenarios, os.cpu_count() or 1):
        results[find_name(scenario)] = compare(scenario, outcome, update=update)
    return results


def find_name(scenario: Scenario) -> str:
    """Return the path of a scenario as a person would write it from here."""
    name = os.path.relpath(scenario.path)
    return str(scenario.path) if name.startswith("..") else name


def compare(scenario: Scenario, outcome: Outcome | str, *, update: bool) -> Result:
    if isinstance(outcome, str):
        return Result("differs", [outcome])
    expected = scenario.read_expected()
    if update and expected is None:
        scenario.write_expected(outcome)
        return Result("written", [])
    lines = [NEVER] if expected is None else find_differences(expected, outcome)
    if update and lines:
        scenario.write_expected(outcome)
        return Result("written", lines)
    return Result("differs" if lines else "ok", lines)
