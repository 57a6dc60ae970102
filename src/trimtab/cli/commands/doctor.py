"""`trimtab doctor`: checks the installation and this folder, and says what to fix."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.doctor import run_checks
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.models.choose import is_offline


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = (
        "Only the model service that a session would use is contacted, at no cost. "
        "The exit code is 1 if something must be fixed."
    )
    parser.add_json()
    parser.add_argument("--offline", action="store_true", help="contact nothing")


def run(args: Arguments) -> int:
    cwd = os.getcwd()
    offline = is_offline(SessionOptions(cwd=cwd, offline=args.offline or None), os.environ)
    findings = run_async(run_checks(os.environ, cwd, offline=offline))
    failed = any(finding.state == "fail" for finding in findings)
    if args.json:
        print_json({"ok": not failed, "findings": findings})
        return int(failed)
    for finding in findings:
        message = neutralise(finding.message, "transcript")
        print(f"{finding.state:<5} {finding.subject:<9} {message}")
        if finding.advice:
            print(f"{'':<16}{neutralise(finding.advice, 'transcript')}")
    return int(failed)
