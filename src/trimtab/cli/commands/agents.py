"""`trimtab agents`: list, add, remove, enable and disable agents."""

import os

from trimtab.contracts.errors import UsageError

HELP = "list, add, remove, enable or disable agents"
USAGE = """\
Usage: trimtab agents [list] [--json] [-C DIR]
       trimtab agents add FILE [--project]   copy an agent's file for yourself, or into this
                                             repository
       trimtab agents remove NAME            delete one of yours (or --project)
       trimtab agents enable NAME | disable NAME
                                             whether other agents may give it work"""


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.files import add_file, remove_file, set_subagent
    from trimtab.cli.customizations.show import print_entries, survey_here

    given = read_arguments(argv, USAGE, switches=("--project",))
    match given.words:
        case [] | ["list"]:
            print_entries(survey_here(given), kinds=("agent",), as_json=given.json)
        case ["add", path]:
            print(f"Added {add_file(path, 'agents', given)}.")
        case ["remove", name]:
            print(f"Removed {remove_file(name, 'agents', given)}.")
        case ["enable" | "disable" as action, name]:
            if not any(one.kind == "agent" for one in survey_here(given).find(name)):
                raise UsageError(f"There is no agent {name!r}; see `trimtab agents`.")
            set_subagent(os.environ, name, enabled=action == "enable")
            told = "may" if action == "enable" else "may not"
            print(f"{name} is {action}d: other agents {told} give it work.")
        case _:
            raise UsageError(f"`trimtab agents {' '.join(argv)}` is not known.\n{USAGE}")
    return 0
