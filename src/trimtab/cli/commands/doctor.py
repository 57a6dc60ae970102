"""`trimtab doctor`: what works in this installation and this folder, and what to do otherwise."""

import os

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise

HELP = "check the installation, the sandbox, trust and settings"
USAGE = """\
Usage: trimtab doctor [--json] [--offline]

Only the model service that a session would use is contacted, and not with --offline; that costs
nothing. The exit code is 1 if something must be put right."""


def is_offline(argv: list[str]) -> bool:
    return "--offline" in argv or os.environ.get("COPILOT_OFFLINE", "").lower() in {"1", "true"}


def run(argv: list[str]) -> int:
    if unknown := set(argv) - {"--json", "--offline"}:
        raise UsageError(f"Unknown argument {unknown.pop()!r}; see `trimtab doctor --help`.")
    from trimtab.cli.event_loop import run_async
    from trimtab.runtime.doctor import run_checks

    findings = run_async(run_checks(os.environ, os.getcwd(), offline=is_offline(argv)))
    failed = any(one.state == "fail" for one in findings)
    if "--json" in argv:
        print_json({"ok": not failed, "findings": findings})
        return int(failed)
    for one in findings:
        print(f"{one.state:<5} {one.subject:<9} {neutralise(one.message, 'transcript')}")
        if one.advice:
            print(f"{'':<16}{neutralise(one.advice, 'transcript')}")
    return int(failed)
