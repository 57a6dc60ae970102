"""`trimtab sessions`: look at, check, mend, copy, delete and restore the sessions on disk."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "list, show, verify, repair, export, fork, delete or restore sessions"


def run(argv: list[str]) -> int:
    from trimtab.cli.sessions.commands import COMMANDS, report_error
    from trimtab.contracts.errors import TrimtabError
    from trimtab.session.archive import Archive

    args = _parser().parse_args(argv)
    try:
        return COMMANDS[args.command](Archive(os.environ, cwd=_cwd()), args)
    except TrimtabError as error:
        return report_error(error, as_json=args.json)


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder has been removed
        return None


def _parser() -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(
        prog="trimtab sessions",
        description=HELP.capitalize() + ". ID is an id, its first 7 or more characters, or a name.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str, *, takes_id: bool = True) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.add_argument("--json", action="store_true", help="print one JSON document")
        if takes_id:
            added.add_argument("id", metavar="ID")
        return added

    command("list", "List all sessions, the one used last first.", takes_id=False)

    show = command("show", "Show the last turn of a session.")
    which = show.add_mutually_exclusive_group()
    which.add_argument("--last", action="store_true", help="the last turn (what is shown anyway)")
    which.add_argument("--all", action="store_true", help="the whole conversation")
    which.add_argument("--events", action="store_true", help="every event, one line each")
    which.add_argument("--follow", action="store_true", help="go on while another process writes")

    verify = command("verify", "Check logs for damage; changes nothing.", takes_id=False)
    verify.add_argument("id", metavar="ID", nargs="?")
    verify.add_argument("--all", action="store_true", help="every session")

    command("repair", "Mend a log as opening it does, and say what was done.")

    export = command("export", "Write a session as one document.")
    export.add_argument("--format", choices=("md", "html", "json"), default="md")
    export.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")

    fork = command("fork", "Start a new session with a copy of another.")
    where = fork.add_mutually_exclusive_group()
    where.add_argument("--at", metavar="EVENT", help="copy up to the event with this id")
    where.add_argument("--turn", type=_positive, metavar="N", help="copy the first N turns")
    fork.add_argument("--name", help="what to call the new session")

    command("delete", "Move a session to the trash.")
    command("trash", "List deleted sessions.", takes_id=False)
    command("restore", "Bring a deleted session back.")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
