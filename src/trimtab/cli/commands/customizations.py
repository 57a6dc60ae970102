"""`trimtab customizations`: everything that shapes a session here, in one list."""

import sys

from trimtab.contracts.errors import UsageError

HELP = "show everything that customizes a session here; explain one"

USAGE = """\
Usage: trimtab customizations [--json] [--kind KIND] [-C DIR]
                                    what a session here loads, from where, and what wins
       trimtab customizations explain NAME [--json] [-C DIR]
                                    one of them: file, scope, why it is used or not"""


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.show import print_entries, print_explanation, survey_here
    from trimtab.customize.overview import ORDER

    given = read_arguments(argv, USAGE, values=("--kind",))
    overview = survey_here(given)
    if given.words[:1] == ["explain"] and len(given.words) == 2:
        found = overview.find(given.words[1])
        if not found:
            raise UsageError(f"There is no customization {given.words[1]!r}; list them without it.")
        print_explanation(found, as_json=given.json)
        return 0
    if given.words:
        raise UsageError(f"`trimtab customizations {' '.join(argv)}` is not known.\n{USAGE}")
    kind = given.values.get("--kind")
    if kind is not None and kind not in ORDER:
        raise UsageError(f"There is no kind {kind!r}; choose one of {', '.join(ORDER)}.")
    print_entries(overview, kinds=None if kind is None else (kind,), as_json=given.json)
    sys.stdout.flush()
    return 0
