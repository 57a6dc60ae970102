"""`trimtab permissions`: explains decisions, lists groups, neutralises text, suggests rules."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from trimtab.cli.command_parser import Arguments, CommandParser, positive
from trimtab.cli.permissions.explain import explain_flags, explain_request
from trimtab.cli.permissions.suggest import suggest
from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count, neutralise
from trimtab.permissions.groups import MARK, find_group, load_groups, load_whole_programs

VALUE_FLAGS = ("--allow-tool", "--deny-tool", "--allow-url", "--deny-url", "--add-dir")
SWITCHES = (
    "--allow-all",
    "--allow-all-tools",
    "--allow-all-paths",
    "--allow-all-urls",
    "--allow-destructive",
    "--disallow-temp-dir",
    "--trust-folder",
    "--sandbox",
    "--no-sandbox",
)
"""Flags of a run that affect decisions."""


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions()
    explain = actions.add("explain", "say what a run with these flags would decide, and why")
    explain.add_argument("script", nargs="?", metavar="COMMAND", help="the shell command")
    for name in VALUE_FLAGS:
        explain.add_argument(name, action="append", default=[], metavar="VALUE", help="as in a run")
    for name in SWITCHES:
        names = (name, "--yolo") if name == "--allow-all" else (name,)
        explain.add_argument(*names, action="store_true", help="as in a run")
    explain.add_argument("--shell", default="bash", help="bash, sh, zsh or powershell")
    explain.add_json()
    explain.add_argument(
        "--jsonl", action="store_true", help="read requests from stdin, one a line"
    )

    safe = actions.add("neutralise", "make foreign text safe to show")
    safe.add_argument("--context", choices=("approval", "transcript"), default="transcript")
    safe.add_argument("--jsonl", action="store_true", help='{"text"} in, {"text"} out')

    groups = actions.add("groups", "list the groups of commands that rules may name")
    groups.add_argument("name", nargs="?", metavar="GROUP", help="the group whose commands to list")
    groups.add_json()

    rules = actions.add("suggest", "suggest rules that would have saved questions")
    rules.add_argument("--least", type=positive, default=2, metavar="N", help="approvals needed")
    rules.add_json()


def run(args: Arguments) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass")
    actions = {
        "explain": _explain,
        "groups": _list_groups,
        "neutralise": _neutralise,
        "suggest": _suggest,
    }
    return actions[args.action](args)


def _explain(args: Arguments) -> int:
    if args.jsonl:
        return _answer_lines(explain_request)
    if args.script is None:
        raise UsageError("There is no command to explain; give one, or requests with --jsonl.")
    answer = explain_flags(args.script, args.shell, _flags_of_a_run(args))
    if args.json:
        print_json(answer)
    else:
        _print_explanation(args.script, answer)
    return 0


def _flags_of_a_run(args: Arguments) -> list[str]:
    """Return the flags as arguments of a run."""
    given = vars(args)
    flags = [name for name in SWITCHES if given[_field(name)]]
    for name in VALUE_FLAGS:
        flags += [f"{name}={value}" for value in given[_field(name)]]
    return flags


def _field(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _print_explanation(command: str, answer: dict[str, Any]) -> None:
    def show(text: str) -> str:
        return neutralise(text, "approval")

    print(show(command))
    for part in answer["commands"]:
        effect = "only reads" if part["readOnly"] else "may change things"
        print(f"  {show(part['identifier'])}: {effect}")
    if answer["hasWriteFileRedirection"]:
        print("  writes files by redirection")
    if answer["decisions"]["given"] == "allow":
        print(f"  fence: {show(answer['fences']['given'])}")
    print(f"{answer['decisions']['given']}: {show(answer['reasons']['given'])}")
    for warning in answer["warnings"]:
        print(f"! {show(warning)}", file=sys.stderr)


def _neutralise(args: Arguments) -> int:
    def answer(request: Any) -> dict[str, Any]:
        if not isinstance(request, dict) or not isinstance(request.get("text"), str):
            return {"error": 'A request is an object with a string: {"text": "…"}.'}
        return {"text": neutralise(request["text"], args.context)}

    if args.jsonl:
        return _answer_lines(answer)
    sys.stdout.write(neutralise(sys.stdin.read(), args.context))
    return 0


def _suggest(args: Arguments) -> int:
    found = suggest(os.environ, least=args.least)
    if args.json:
        print_json(found)
    elif not found:
        print("No command was approved often enough to suggest a rule.")
    for suggestion in () if args.json else found:
        times = count(suggestion.approvals, "time")
        print(f"--allow-tool '{suggestion.rule}'  # approved {times}")
    return 0


def _list_groups(args: Arguments) -> int:
    groups, programs = load_groups(), load_whole_programs()
    name = (args.name or "").removeprefix(MARK)
    if name in programs:
        whole = find_group(MARK + name)
        print_json(programs[name]) if args.json else print(whole.title if whole else "")
        return 0
    if name and name not in groups:
        known = ", ".join(MARK + known for known in groups)
        raise UsageError(f"There is no group of commands {MARK}{name}; the groups are {known}.")
    if args.json:
        print_json(groups[name] if name else groups)
    elif name:
        print(*groups[name].commands, sep="\n")
    for rule, group in () if name or args.json else groups.items():
        print(f"{f'shell({MARK}{rule})':20} {group.title} ({len(group.commands)} commands)")
    for program in () if name or args.json else programs:
        whole = find_group(MARK + program)
        print(f"{f'shell({MARK}{program})':20} {whole.title if whole else ''}")
    return 0


def _answer_lines(answer: Callable[[Any], dict[str, Any]]) -> int:
    """Answer each line as soon as it is read: the caller may wait for the answer."""
    lines: Iterable[bytes] = sys.stdin.buffer
    for line in lines:
        try:
            given = answer(json.loads(line.decode("utf-8")))
        except Exception as error:  # the lines after it are answered whatever this one does
            given = {"error": f"{type(error).__name__}: {error}"[:1000]}
        # ASCII, because a lone surrogate cannot be encoded in UTF-8.
        sys.stdout.buffer.write(json.dumps(given).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0
