"""`trimtab schema`: prints the published contracts."""

import sys

from trimtab.contracts.errors import UsageError

HELP = "print the JSON Schema of the event stream"
USAGE = "Usage: trimtab schema events"


def run(argv: list[str]) -> int:
    if argv != ["events"]:
        raise UsageError("The schema to print is not known; write `trimtab schema events`.")
    import msgspec

    from trimtab.transports.headless.schema import event_schema

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(event_schema()), indent=2))
    sys.stdout.buffer.write(b"\n")
    return 0
