"""`trimtab instructions`: the instruction files a session here would be given."""

from trimtab.contracts.errors import UsageError

HELP = "list the instruction files a session here is given"
USAGE = "Usage: trimtab instructions [list] [--json] [-C DIR]"


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.show import print_entries, survey_here

    given = read_arguments(argv, USAGE)
    if given.words not in ([], ["list"]):
        raise UsageError(f"`trimtab instructions {' '.join(argv)}` is not known.\n{USAGE}")
    print_entries(survey_here(given), kinds=("instruction",), as_json=given.json)
    return 0
