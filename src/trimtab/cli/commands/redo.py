"""`trimtab redo`: take back the last undo."""

HELP = "take back the last undo"


def run(argv: list[str]) -> int:
    from trimtab.cli import past

    return past.run("redo", argv)
