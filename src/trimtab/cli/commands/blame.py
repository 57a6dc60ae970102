"""`trimtab blame`: shows who wrote each line of a file, a session's prompt or a person."""

import os

import msgspec

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.streams import print_json
from trimtab.undo.blame import blame


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("path", metavar="PATH")
    parser.add_json()


def run(args: Arguments) -> int:
    lines = blame(os.environ, args.path)
    if args.json:
        rows = [
            {**msgspec.to_builtins(line.source), "text": line.text.decode("utf-8", "replace")}
            for line in lines
        ]
        print_json({"path": args.path, "lines": rows}, indent=None)
        return 0
    for number, line in enumerate(lines, 1):
        source = line.source
        if source.session:
            author = f"{source.session[:8]} prompt {source.turn} {source.reason}"
            call = " ".join((source.detail or source.call).split())[:24]
        else:
            author, call = source.reason, ""
        text = line.text.decode("utf-8", "replace").rstrip("\n")
        print(f"{author:<30} {call:<24} {number:>5} {text}")
    return 0
