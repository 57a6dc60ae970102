"""`trimtab hooks`: lists the hooks of a session here, and runs them on a sample input."""

import json
import os
import sys
from typing import Any

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.hooks import HookEntry, UnreadableGuard
from trimtab.contracts.text import count, neutralise
from trimtab.customize.hook_files import NAMES
from trimtab.hooks.dry_run import DISABLED, SAMPLES, HookRun, Listed, list_hooks, try_hooks


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list every hook, its file, and whether it runs")
    test = actions.add("test", "run the hooks of an event and show the answer of each")
    test.add_argument("event", metavar="EVENT", help="preToolUse, agentStop, …")
    test.add_argument("--input", metavar="FILE", help="use this JSON instead of a sample")
    for part in (parser, listing, test):
        part.add_json()
        part.add_argument(
            "--trust-folder", action="store_true", help="run the hooks of this folder, too"
        )


def run(args: Arguments) -> int:
    return run_async(_test(args) if args.action == "test" else _list(args))


async def _find(args: Arguments) -> Listed:
    trusted = args.trust_folder or os.environ.get("COPILOT_ALLOW_ALL") == "true"
    return await list_hooks(os.environ, os.getcwd(), trusted=trusted)


async def _list(args: Arguments) -> int:
    listed = await _find(args)
    if args.json:
        hooks = [_describe(entry) | {"runs": listed.runs(entry)} for entry in listed.entries]
        problems = [problem.sentence for problem in listed.found.problems]
        print_json({"hooks": hooks, "problems": problems})
        return 0
    for entry in listed.entries:
        obstacle = listed.obstacle(entry)
        state = f"  ({obstacle}: does not run)" if obstacle else ""
        matcher = f" [{_show(entry.matcher)}]" if entry.matcher else ""
        print(f"{entry.event}{matcher}  {_show(entry.does)}{state}")
        print(f"    {entry.origin}, {_show(entry.file)}:{entry.line}")
    if not listed.entries:
        print("There are no hooks here.")
    _print_problems(listed)
    return 0


async def _test(args: Arguments) -> int:
    args.event = NAMES.get(args.event, args.event)
    if args.event not in SAMPLES:
        raise UsageError(f"No hook is called at {args.event!r}; choose {', '.join(SAMPLES)}.")
    listed = await _find(args)
    given = _read_input(args.input) if args.input else SAMPLES[args.event]
    answers, outcome = await try_hooks(listed, os.environ, os.getcwd(), args.event, given)
    if args.json:
        print_json({"hooks": list(map(_describe_answer, answers)), "outcome": outcome})
        return 0
    for answer in answers:
        _print_answer(answer)
    obstacles = [listed.obstacle(entry) for entry in listed.entries if entry.event == args.event]
    skipped = [obstacle for obstacle in obstacles if obstacle and obstacle != DISABLED]
    if skipped:
        hooks = count(len(skipped), "hook")
        print(f"{hooks} of this folder did not run ({skipped[0]}); use --trust-folder.")
    print(f"Together: {_compact(outcome)}" if answers else f"No hook of {args.event} ran.")
    _print_problems(listed)
    return 0


def _print_answer(answer: HookRun) -> None:
    entry = answer.entry
    print(f"{_show(entry.does)}  ({_show(entry.file)}:{entry.line})")
    print(f"    input   {_compact(answer.given)}")
    output = f"output  {_compact(answer.output)}"
    ending = f"failed: {_show(answer.problem)}" if answer.problem else output
    print(f"    {ending}  in {answer.seconds:.2f} s")


def _print_problems(listed: Listed) -> None:
    for problem in listed.found.problems:
        print(f"Problem: {_show(problem.sentence)}", file=sys.stderr)


def _describe(entry: HookEntry | UnreadableGuard) -> dict[str, Any]:
    return {
        "event": entry.event,
        "type": entry.type,
        "matcher": entry.matcher,
        "does": entry.does,
        "source": entry.origin,
        "file": entry.file,
        "line": entry.line,
    }


def _describe_answer(answer: HookRun) -> dict[str, Any]:
    return _describe(answer.entry) | {
        "given": answer.given,
        "output": answer.output,
        "problem": answer.problem,
        "seconds": round(answer.seconds, 3),
    }


def _read_input(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"--input {path} cannot be read ({error}); name a JSON file.") from None
    if not isinstance(given, dict):
        raise UsageError(f"--input {path} must contain a JSON object; correct the file.")
    return given


def _show(text: str | None) -> str:
    return neutralise(text or "", "approval").replace("\n", " ⏎ ")


def _compact(value: Any) -> str:
    return _show(json.dumps(value, ensure_ascii=False)) if value else "nothing"
