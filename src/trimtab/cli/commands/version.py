"""`trimtab version`: the same as `--version`."""

from trimtab.version import __version__

HELP = "print the version"


def run(argv: list[str]) -> int:
    print(f"Trimtab {__version__}")
    return 0
