"""`trimtab version`: the same as `--version`."""

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.version import __version__


def add_arguments(parser: CommandParser) -> None:
    """Add nothing: the command takes no arguments."""


def run(args: Arguments) -> int:
    print(f"Trimtab {__version__}")
    return 0
