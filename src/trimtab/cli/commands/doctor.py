"""`trimtab doctor`: what works in this installation and this folder, and what to do otherwise."""

import os
import sys

from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise

HELP = "check the installation, the sandbox, trust and settings"
USAGE = "Usage: trimtab doctor [--json]"


def run(argv: list[str]) -> int:
    if "--help" in argv or "-h" in argv:
        print(f"{USAGE}\nNothing is contacted. The exit code is 1 if something must be put right.")
        return 0
    if unknown := set(argv) - {"--json"}:
        raise UsageError(f"Unknown argument {unknown.pop()!r}; write trimtab doctor [--json].")
    import asyncio

    from trimtab.runtime.doctor import examine

    findings = asyncio.run(examine(os.environ, os.getcwd()))
    failed = any(one.state == "fail" for one in findings)
    if "--json" in argv:
        import msgspec

        document = msgspec.json.encode({"ok": not failed, "findings": findings})
        sys.stdout.write(msgspec.json.format(document, indent=2).decode() + "\n")
        return int(failed)
    for one in findings:
        print(f"{one.state:<5} {one.subject:<9} {neutralise(one.message, 'transcript')}")
        if one.advice:
            print(f"{'':<16}{neutralise(one.advice, 'transcript')}")
    return int(failed)
