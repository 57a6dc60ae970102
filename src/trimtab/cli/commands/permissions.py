"""`trimtab permissions`: what would be allowed and why, text made harmless, rules suggested."""

import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count

if TYPE_CHECKING:
    import argparse

HELP = "explain decisions about commands, suggest rules"
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
"""Flags of a run that decide about calls."""


def run(argv: list[str]) -> int:
    args = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass")
    return {"explain": _explain, "neutralise": _neutralise, "suggest": _suggest}[args.action](args)


def _parser() -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(prog="trimtab permissions", description=HELP.capitalize())
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    explain = actions.add_parser("explain", help="say what would happen to a command, and why")
    explain.add_argument("command", nargs="?", metavar="COMMAND")
    for name in VALUE_FLAGS:
        explain.add_argument(name, action="append", default=[], metavar="VALUE")
    for name in SWITCHES:
        names = (name, "--yolo") if name == "--allow-all" else (name,)
        explain.add_argument(*names, action="store_true")
    explain.add_argument("--shell", default="bash", help="bash, sh, zsh or powershell")
    explain.add_argument("--json", action="store_true", help="print one JSON document")
    explain.add_argument("--jsonl", action="store_true", help="requests on stdin, one a line")

    neutralise = actions.add_parser("neutralise", help="make foreign text safe to show")
    neutralise.add_argument("--context", choices=("approval", "transcript"), default="transcript")
    neutralise.add_argument("--jsonl", action="store_true", help='{"text"} in, {"text"} out')

    suggest = actions.add_parser("suggest", help="rules that would have saved questions")
    suggest.add_argument("--least", type=int, default=2, metavar="N", help="approvals needed")
    suggest.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _explain(args: "argparse.Namespace") -> int:
    from trimtab.cli.permissions.explain import explain_flags, explain_request

    if args.jsonl:
        return _answer_lines(explain_request)
    if args.command is None:
        raise UsageError("There is no command to explain; give one, or requests with --jsonl.")
    answer = explain_flags(args.command, args.shell, _flags_of_a_run(args))
    if args.json:
        _print_json(answer)
    else:
        _print_explanation(args.command, answer)
    return 0


def _flags_of_a_run(args: "argparse.Namespace") -> list[str]:
    """The flags as a run would be given them."""
    given = vars(args)
    flags = [name for name in SWITCHES if given[_field(name)]]
    for name in VALUE_FLAGS:
        flags += [f"{name}={value}" for value in given[_field(name)]]
    return flags


def _field(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _print_explanation(command: str, answer: dict[str, Any]) -> None:
    from trimtab.contracts.text import neutralise

    def show(text: str) -> str:
        return neutralise(text, "approval")

    print(show(command))
    for one in answer["commands"]:
        effect = "only reads" if one["readOnly"] else "may change things"
        print(f"  {show(one['identifier'])}: {effect}")
    if answer["hasWriteFileRedirection"]:
        print("  writes files by redirection")
    print(f"{answer['decisions']['given']}: {show(answer['reasons']['given'])}")
    for warning in answer["warnings"]:
        print(f"! {show(warning)}", file=sys.stderr)


def _neutralise(args: "argparse.Namespace") -> int:
    from trimtab.contracts.text import neutralise

    def answer(request: Any) -> dict[str, Any]:
        if not isinstance(request, dict) or not isinstance(request.get("text"), str):
            return {"error": 'A request is an object with a string: {"text": "…"}.'}
        return {"text": neutralise(request["text"], args.context)}

    if args.jsonl:
        return _answer_lines(answer)
    sys.stdout.write(neutralise(sys.stdin.read(), args.context))
    return 0


def _suggest(args: "argparse.Namespace") -> int:
    from trimtab.cli.permissions.suggest import suggest

    found = suggest(os.environ, least=args.least)
    if args.json:
        _print_json([{"rule": one.rule, "approvals": one.approvals} for one in found])
    elif not found:
        print("No question was answered with yes often enough to suggest a rule.")
    for one in () if args.json else found:
        print(f"--allow-tool '{one.rule}'  # approved {count(one.approvals, 'time')}")
    return 0


def _answer_lines(answer: Callable[[Any], dict[str, Any]]) -> int:
    """One answer for each line, written at once: whoever asks may wait for it."""
    import json

    lines: Iterable[bytes] = sys.stdin.buffer
    for line in lines:
        try:
            given = answer(json.loads(line.decode("utf-8")))
        except Exception as error:  # whatever a line does, those behind it are answered
            given = {"error": f"{type(error).__name__}: {error}"[:1000]}
        # In ASCII, so that half a surrogate pair is no problem either.
        sys.stdout.buffer.write(json.dumps(given).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _print_json(value: Any) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
