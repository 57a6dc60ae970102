"""`trimtab init`: writes a first instruction file, drafted from the repository's files."""

import os

from trimtab.checkout.checkout import find_checkout
from trimtab.checkout.project_commands import find_commands, read_manifest
from trimtab.cli.command_parser import Arguments, CommandParser, chosen_folder
from trimtab.config.files import cannot, replace_file
from trimtab.contracts.errors import UsageError

FILE = os.path.join(".github", "copilot-instructions.md")
MAX_FOLDERS = 40


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


def draft_instructions(root: str) -> str:
    """Return the text of the file: only what the files of the repository say."""
    lines = [f"# {os.path.basename(root) or 'This repository'}", ""]
    if about := _about(root):
        lines += [about, ""]
    commands = find_commands(root)
    lines += ["## Commands", ""]
    lines += [f"- `{command}`" for command in commands]
    lines += ["- How to build and test this is not written down yet."] if not commands else []
    lines += ["", "## Layout", ""]
    lines += [f"- `{name}/`" for name in _folders(root)]
    lines += [
        "",
        "## Rules",
        "",
        "- Change only what the task needs, and run the commands above before you say it is done.",
        "",
    ]
    return "\n".join(lines)


def _about(root: str) -> str:
    """Return the first paragraph of the README that is neither heading, badge nor picture."""
    for name in ("README.md", "README.rst", "README.txt", "README"):
        for paragraph in read_manifest(root, name).split("\n\n"):
            plain = " ".join(paragraph.split())
            if plain and plain[0] not in "#![<=-" and len(plain) > 20:
                return plain[:400]
    return ""


def _folders(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            names = [
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")
            ]
    except OSError:
        return []
    skipped = {"node_modules", "dist", "build", "out", "target", "__pycache__", "vendor"}
    return sorted(set(names) - skipped)[:MAX_FOLDERS]
