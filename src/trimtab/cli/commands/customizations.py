"""`trimtab customizations`: everything that shapes a session here, in one list."""

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.customizations.show import print_entries, print_explanation, survey_folder
from trimtab.contracts.errors import UsageError
from trimtab.customize.overview import ORDER


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list what a session here loads, from where, and what wins")
    explain = actions.add("explain", "show an entry's file, its scope, and why it is used or not")
    explain.add_argument("name", metavar="NAME")
    for part in (parser, listing):
        part.add_argument(
            "--kind", choices=ORDER, metavar="KIND", help=f"one of {', '.join(ORDER)}"
        )
    for part in (parser, listing, explain):
        part.add_json()
        part.add_folder()


def run(args: Arguments) -> int:
    overview = survey_folder(args)
    if args.action == "explain":
        found = overview.find(args.name)
        if not found:
            raise UsageError(
                f"There is no customization {args.name!r}; see `trimtab customizations`."
            )
        print_explanation(found, as_json=args.json)
    else:
        kinds = None if args.kind is None else (args.kind,)
        print_entries(overview, kinds=kinds, as_json=args.json)
    return 0
