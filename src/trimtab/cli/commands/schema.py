"""`trimtab schema`: prints the published contracts."""

import sys

import msgspec

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.transports.headless.schema import event_schema


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("schema", choices=("events",), metavar="SCHEMA", help="events")


def run(args: Arguments) -> int:
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(event_schema()), indent=2))
    sys.stdout.buffer.write(b"\n")
    return 0
