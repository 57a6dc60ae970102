"""`trimtab doctor`: what works in this installation and this folder, and what to do otherwise."""

import os

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise

HELP = "check the installation, the sandbox, trust and settings"
USAGE = """\
Usage: trimtab doctor [--json]

The exit code is 1 if something must be put right."""


def run(argv: list[str]) -> int:
    if unknown := set(argv) - {"--json"}:
        raise UsageError(f"Unknown argument {unknown.pop()!r}; write trimtab doctor [--json].")
    from trimtab.cli.event_loop import run_async
    from trimtab.runtime.doctor import examine

    findings = run_async(examine(os.environ, os.getcwd()))
    failed = any(one.state == "fail" for one in findings)
    if "--json" in argv:
        print_json({"ok": not failed, "findings": findings})
        return int(failed)
    for one in findings:
        print(f"{one.state:<5} {one.subject:<9} {neutralise(one.message, 'transcript')}")
        if one.advice:
            print(f"{'':<16}{neutralise(one.advice, 'transcript')}")
    return int(failed)
