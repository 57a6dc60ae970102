"""`trimtab version`: the same as `--version`."""

from trimtab.contracts.errors import UsageError
from trimtab.version import __version__

HELP = "print the version"
USAGE = "Usage: trimtab version"


def run(argv: list[str]) -> int:
    if argv:
        raise UsageError(f"`trimtab version` takes no arguments; leave out {argv[0]!r}.")
    print(f"Trimtab {__version__}")
    return 0
