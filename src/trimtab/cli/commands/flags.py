"""`trimtab flags`: lists the feature flags with their state, their source and their effect."""

import os
from collections.abc import Iterable

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.streams import print_json
from trimtab.config.feature_flags import Flag
from trimtab.contracts.options import CustomizationOptions, SessionOptions
from trimtab.customize.overview import gather


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = (
        "`on request` means that using the feature is enough. Turn a feature on or off with "
        "--feature NAME=on|off for one run, COPILOT_CLI_NAME=1|0 in the environment, or "
        "feature_flags.enabled and feature_flags.disabled in config.json or settings.json."
    )
    parser.add_json()
    parser.add_argument(
        "--experimental", action="store_true", help="show the state with --experimental"
    )


def run(args: Arguments) -> int:
    customize = CustomizationOptions(experimental=True if args.experimental else None)
    options = SessionOptions(cwd=os.getcwd(), customize=customize)
    flags = gather(os.environ, options).flags.values()
    if args.json:
        print_json({"flags": [describe(flag) for flag in flags]})
        return 0
    print_table(flags)
    return 0


def describe(flag: Flag) -> dict[str, str | bool]:
    return {
        "name": flag.name,
        "tier": flag.tier,
        "enabled": flag.enabled,
        "state": flag.state,
        "source": flag.decided_by,
        "does": flag.description,
    }


def print_table(flags: Iterable[Flag]) -> None:
    rows = [(flag.name, flag.state, flag.decided_by, flag.description) for flag in flags]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        fields = [f"{text:<{width}}" for text, width in zip(row, widths, strict=False)]
        print("  ".join((*fields, row[3])))
