"""`trimtab undo`: take back what a turn did to files, shell commands included."""

HELP = "take back what a turn did to files, shell commands included"


def run(argv: list[str]) -> int:
    from trimtab.cli import past

    return past.run("undo", argv)
