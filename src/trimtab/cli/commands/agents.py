"""`trimtab agents`: list, add, remove, enable and disable agents."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.customizations.files import add_file, remove_file, set_subagent
from trimtab.cli.customizations.show import print_entries, survey_folder
from trimtab.contracts.errors import UsageError


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the agents a session here has")
    add = actions.add("add", "copy an agent's file into your configuration")
    add.add_argument("path", metavar="FILE", help="a Markdown file")
    remove = actions.add("remove", "delete an agent of your configuration")
    remove.add_argument("name", metavar="NAME")
    for part in (add, remove):
        part.add_argument("--project", action="store_true", help="in this repository instead")
    enable = actions.add("enable", "let other agents give it work")
    disable = actions.add("disable", "keep other agents from giving it work")
    for part in (enable, disable):
        part.add_argument("name", metavar="NAME")
    for part in (parser, listing):
        part.add_json()
    for part in (parser, listing, add, remove, enable, disable):
        part.add_folder()


def run(args: Arguments) -> int:
    match args.action:
        case "list":
            print_entries(survey_folder(args), kinds=("agent",), as_json=args.json)
        case "add":
            print(f"Added {add_file(args.path, 'agents', args)}.")
        case "remove":
            print(f"Removed {remove_file(args.name, 'agents', args)}.")
        case "enable" | "disable" as action:
            if not any(entry.kind == "agent" for entry in survey_folder(args).find(args.name)):
                raise UsageError(f"There is no agent {args.name!r}; see `trimtab agents`.")
            set_subagent(os.environ, args.name, enabled=action == "enable")
            permission = "may" if action == "enable" else "may not"
            print(f"{args.name} is {action}d: other agents {permission} give it work.")
    return 0
