"""`trimtab instructions`: the instruction files a session here loads."""

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.customizations.show import print_entries, survey_folder


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    for part in (parser, actions.add("list", "list the instruction files")):
        part.add_json()
        part.add_folder()


def run(args: Arguments) -> int:
    print_entries(survey_folder(args), kinds=("instruction",), as_json=args.json)
    return 0
