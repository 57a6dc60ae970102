"""`trimtab blame`: who wrote each line of a file, a session's turn or a person."""

import os

HELP = "say who wrote each line of a file: which session, turn and call, or a person"


def run(argv: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="trimtab blame", description=HELP.capitalize() + ".")
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    try:
        args = parser.parse_args(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    from trimtab.undo.blame import blame

    lines = blame(os.environ, args.path)
    if args.json:
        import json

        import msgspec

        rows = [
            {**msgspec.to_builtins(line.source), "text": line.text.decode("utf-8", "replace")}
            for line in lines
        ]
        print(json.dumps({"path": args.path, "lines": rows}))
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
