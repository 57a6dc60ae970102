"""`trimtab init`: a first instruction file, from what the repository says about itself."""

import os

from trimtab.contracts.errors import UsageError

HELP = "write a first .github/copilot-instructions.md for this repository"
USAGE = "Usage: trimtab init [--force] [-C DIR]"
FILE = os.path.join(".github", "copilot-instructions.md")


def run(argv: list[str]) -> int:
    from trimtab.checkout.checkout import find_checkout
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.draft import draft_instructions
    from trimtab.config.files import cannot, replace_file

    given = read_arguments(argv, USAGE, switches=("--force",))
    if given.words:
        raise UsageError(f"`trimtab init {' '.join(argv)}` is not known.\n{USAGE}")
    root = find_checkout(given.cwd).git_root or given.cwd
    path = os.path.join(root, FILE)
    if os.path.lexists(path) and not given.switches:
        raise UsageError(f"{path} exists already; edit it, or replace it with --force.")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise cannot("create the folder", os.path.dirname(path), error) from error
    replace_file(path, draft_instructions(root).encode("utf-8", "replace"), 0o644)
    print(f"Wrote {path}. Read it, correct it, and add what is not in the code.")
    return 0
