"""`trimtab blame`: who wrote each line of a file, a session's turn or a person."""

import os

from trimtab.cli.streams import print_json

HELP = "say who wrote each line of a file: which session, turn and call, or a person"


def run(argv: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="trimtab blame", description=HELP.capitalize() + ".")
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args(argv)
    from trimtab.undo.blame import blame

    lines = blame(os.environ, args.path)
    if args.json:
        import msgspec

        rows = [
            {**msgspec.to_builtins(line.source), "text": line.text.decode("utf-8", "replace")}
            for line in lines
        ]
        print_json({"path": args.path, "lines": rows}, indent=None)
        return 0
    for number, line in enumerate(lines, 1):
        source = line.source
        if source.session:
            where = f"{source.session[:8]} turn {source.turn} {source.reason}"
            what = " ".join((source.detail or source.call).split())[:24]
        else:
            where, what = source.reason, ""
        text = line.text.decode("utf-8", "replace").rstrip("\n")
        print(f"{where:<28} {what:<24} {number:>5} {text}")
    return 0
