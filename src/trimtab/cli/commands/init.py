"""`trimtab init`: writes a first instruction file from what the repository's files say."""

import os

from trimtab.checkout.checkout import find_checkout
from trimtab.cli.command_parser import Arguments, CommandParser, chosen_folder
from trimtab.cli.customizations.draft import draft_instructions
from trimtab.config.files import cannot, replace_file
from trimtab.contracts.errors import UsageError

FILE = os.path.join(".github", "copilot-instructions.md")


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_folder()


def run(args: Arguments) -> int:
    cwd = chosen_folder(args)
    root = find_checkout(cwd).git_root or cwd
    path = os.path.join(root, FILE)
    if os.path.lexists(path) and not args.force:
        raise UsageError(f"{path} exists already; edit it, or replace it with --force.")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise cannot("create the folder", os.path.dirname(path), error) from error
    replace_file(path, draft_instructions(root).encode("utf-8", "replace"), 0o644)
    print(f"Wrote {path}. Read it, correct it, and add what is not in the code.")
    return 0
