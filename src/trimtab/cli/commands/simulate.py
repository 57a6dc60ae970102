"""`trimtab simulate`: plays recorded sessions again, and shows what has become different."""

import os

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
    differing = [name for name, lines in results.items() if lines]
    if args.json:
        print_json({"ok": not differing, "scenarios": results})
        return int(bool(differing))
    for name, lines in results.items():
        print(f"{'differs' if lines else 'ok':<8}{name}")
        for line in lines:
            print(neutralise(f"        {line}", "transcript"))
    print(f"{count(len(results), 'scenario')}, {len(differing)} differ")
    return int(bool(differing))


async def simulate(scenarios: list[Scenario], *, update: bool) -> dict[str, list[str]]:
    """Return the differences of each scenario, by name; with `update`, accept them."""
    results: dict[str, list[str]] = {}
    async for scenario, outcome in run_all(scenarios, os.cpu_count() or 1):
        results[find_name(scenario)] = compare(scenario, outcome, update=update)
    return results


def find_name(scenario: Scenario) -> str:
    """Return the path of a scenario as a person would write it from here."""
    name = os.path.relpath(scenario.path)
    return str(scenario.path) if name.startswith("..") else name


def compare(scenario: Scenario, outcome: Outcome | str, *, update: bool) -> list[str]:
    if isinstance(outcome, str):
        return [outcome]
    if update:
        scenario.write_expected(outcome)
        return []
    expected = scenario.read_expected()
    return [NEVER] if expected is None else find_differences(expected, outcome)
