"""`trimtab skills`: list, add, remove, enable and disable skills and commands."""

import os

from trimtab.contracts.errors import UsageError

HELP = "list, add, remove, enable or disable skills"
USAGE = """\
Usage: trimtab skills [list] [--json] [-C DIR]
       trimtab skills add PATH [--project]   copy a skill (a folder or a SKILL.md) for yourself,
                                             or into this repository
       trimtab skills remove NAME            delete one of yours (or --project)
       trimtab skills enable NAME | disable NAME"""


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import Given, read_arguments
    from trimtab.cli.customizations.files import add_file, remove_file, set_listed
    from trimtab.cli.customizations.show import print_entries, survey_here

    given: Given = read_arguments(argv, USAGE, switches=("--project",))
    match given.words:
        case [] | ["list"]:
            kinds = ("skill", "command")
            print_entries(survey_here(given), kinds=kinds, as_json=given.json)
        case ["add", path]:
            print(f"Added {add_file(path, 'skills', given)}.")
        case ["remove", name]:
            print(f"Removed {remove_file(name, 'skills', given)}.")
        case ["enable" | "disable" as action, name]:
            known = [
                one for one in survey_here(given).find(name) if one.kind in ("skill", "command")
            ]
            if not known:
                raise UsageError(f"There is no skill {name!r}; see `trimtab skills`.")
            set_listed(os.environ, "disabledSkills", name, listed=action == "disable")
            print(f"{name} is {action}d.")
        case _:
            raise UsageError(f"`trimtab skills {' '.join(argv)}` is not known.\n{USAGE}")
    return 0
