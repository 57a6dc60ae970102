"""`trimtab hooks`: the hooks a session here would have, and what they say to a sample input."""

import os
import sys
from typing import TYPE_CHECKING, Any

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count

if TYPE_CHECKING:
    import argparse

    from trimtab.contracts.hooks import HookEntry, UnreadableGuard
    from trimtab.hooks.dry_run import HookRun, Listed

HELP = "list hooks, and run them on a sample input"


def run(argv: list[str]) -> int:
    args = _parser().parse_args(argv or ["list"])
    from trimtab.cli.event_loop import run_async

    return run_async({"list": _list, "test": _test}[args.action](args))


def _parser() -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(prog="trimtab hooks", description=HELP.capitalize())
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="every hook, where it stands and whether it runs")
    test = actions.add_parser("test", help="run the hooks of an event and show what each said")
    test.add_argument("event", metavar="EVENT", help="preToolUse, agentStop, …")
    test.add_argument("--input", metavar="FILE", help="JSON to give them instead of a sample")
    for action in (listing, test):
        action.add_argument("--json", action="store_true", help="print one JSON document")
        action.add_argument(
            "--trust-folder", action="store_true", help="run the hooks of this folder, too"
        )
    return parser


async def _find(args: "argparse.Namespace") -> "Listed":
    from trimtab.hooks.dry_run import list_hooks

    trusted = args.trust_folder or os.environ.get("COPILOT_ALLOW_ALL") == "true"
    return await list_hooks(os.environ, os.getcwd(), trusted=trusted)


async def _list(args: "argparse.Namespace") -> int:
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


async def _test(args: "argparse.Namespace") -> int:
    from trimtab.customize.hook_files import NAMES
    from trimtab.hooks.dry_run import DISABLED, SAMPLES, try_hooks

    args.event = NAMES.get(args.event, args.event)
    if args.event not in SAMPLES:
        raise UsageError(f"No hook is called at {args.event!r}; name one of {', '.join(SAMPLES)}.")
    listed = await _find(args)
    given = _read_input(args.input) if args.input else SAMPLES[args.event]
    said, outcome = await try_hooks(listed, os.environ, os.getcwd(), args.event, given)
    if args.json:
        print_json({"hooks": [_describe_said(one) for one in said], "outcome": outcome})
        return 0
    for one in said:
        _print_said(one)
    mine = [one for one in listed.entries if one.event == args.event]
    left = [why for one in mine if (why := listed.obstacle(one)) and why != DISABLED]
    if left:
        hooks = count(len(left), "hook")
        print(f"{hooks} of this folder did not run ({left[0]}); use --trust-folder.")
    print(f"Together: {_compact(outcome)}" if said else f"No hook of {args.event} ran.")
    _print_problems(listed)
    return 0


def _print_said(one: "HookRun") -> None:
    print(f"{_show(one.entry.does)}  ({_show(one.entry.file)}:{one.entry.line})")
    print(f"    given  {_compact(one.given)}")
    ended = f"failed: {_show(one.problem)}" if one.problem else f"said   {_compact(one.output)}"
    print(f"    {ended}  in {one.seconds:.2f} s")


def _print_problems(listed: "Listed") -> None:
    for problem in listed.found.problems:
        print(f"Problem: {_show(problem.sentence)}", file=sys.stderr)


def _describe(entry: "HookEntry | UnreadableGuard") -> dict[str, Any]:
    return {
        "event": entry.event,
        "type": entry.type,
        "matcher": entry.matcher,
        "does": entry.does,
        "source": entry.origin,
        "file": entry.file,
        "line": entry.line,
    }


def _describe_said(one: "HookRun") -> dict[str, Any]:
    answer = {"given": one.given, "output": one.output, "problem": one.problem}
    return _describe(one.entry) | answer | {"seconds": round(one.seconds, 3)}


def _read_input(path: str) -> dict[str, Any]:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"--input {path} cannot be read ({error}); name a JSON file.") from None
    if not isinstance(given, dict):
        raise UsageError(f"--input {path} holds no JSON object; a hook is given one.")
    return given


def _show(text: str | None) -> str:
    from trimtab.contracts.text import neutralise

    return neutralise(text or "", "approval").replace("\n", " ⏎ ")


def _compact(value: Any) -> str:
    import json

    return _show(json.dumps(value, ensure_ascii=False)) if value else "nothing"
