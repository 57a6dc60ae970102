"""`trimtab skills`: list, add, remove, enable and disable skills and commands."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.customizations.files import add_file, remove_file, set_listed
from trimtab.cli.customizations.show import print_entries, survey_folder
from trimtab.contracts.errors import UsageError

KINDS = ("skill", "command")


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the skills and commands a session here has")
    add = actions.add("add", "copy a skill into your configuration")
    add.add_argument("path", metavar="PATH", help="a folder with a SKILL.md, or the file itself")
    remove = actions.add("remove", "delete a skill of your configuration")
    remove.add_argument("name", metavar="NAME")
    for part in (add, remove):
        part.add_argument("--project", action="store_true", help="in this repository instead")
    enable = actions.add("enable", "use a skill again")
    disable = actions.add("disable", "stop using a skill")
    for part in (enable, disable):
        part.add_argument("name", metavar="NAME")
    for part in (parser, listing):
        part.add_json()
    for part in (parser, listing, add, remove, enable, disable):
        part.add_folder()


def run(args: Arguments) -> int:
    match args.action:
        case "list":
            print_entries(survey_folder(args), kinds=KINDS, as_json=args.json)
        case "add":
            print(f"Added {add_file(args.path, 'skills', args)}.")
        case "remove":
            print(f"Removed {remove_file(args.name, 'skills', args)}.")
        case "enable" | "disable" as action:
            if not any(entry.kind in KINDS for entry in survey_folder(args).find(args.name)):
                raise UsageError(f"There is no skill {args.name!r}; see `trimtab skills`.")
            set_listed(os.environ, "disabledSkills", args.name, listed=action == "disable")
            print(f"{args.name} is {action}d.")
    return 0
