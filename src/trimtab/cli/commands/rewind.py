"""`trimtab rewind`: go back to before a turn: conversation, files, or both."""

HELP = "go back to before a turn: conversation, files, or both"


def run(argv: list[str]) -> int:
    from trimtab.cli import past

    return past.run("rewind", argv)
