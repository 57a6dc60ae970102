"""`trimtab sessions`: lists, shows, checks, repairs, copies, deletes and restores sessions."""

import os

from trimtab.cli.command_parser import HIDDEN, Arguments, CommandParser, positive
from trimtab.cli.sessions.commands import COMMANDS, report_error
from trimtab.contracts.errors import TrimtabError
from trimtab.session.archive import Archive


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = "ID is a session's id, its first 7 or more characters, or its name."
    actions = parser.add_actions(default="list")
    parser.add_json()

    def add(name: str, summary: str, *, takes_id: bool = True) -> CommandParser:
        added = actions.add(name, summary)
        added.add_json()
        if takes_id:
            added.add_argument("id", metavar="ID")
        return added

    add("list", "list all sessions, the last used first", takes_id=False)

    show = add("show", "show the last prompt of a session and the work on it")
    part = show.add_mutually_exclusive_group()
    part.add_argument("--last", action="store_true", help="the last prompt (the default)")
    part.add_argument("--all", action="store_true", help="the whole conversation")
    part.add_argument("--events", action="store_true", help="every event, one line each")
    part.add_argument("--follow", action="store_true", help="continue while another process writes")

    add("requests", "show the requests of a session, their tool calls and commits")

    verify = add("verify", "check logs for damage without changing them", takes_id=False)
    verify.add_argument("id", metavar="ID", nargs="?")
    verify.add_argument("--all", action="store_true", help="every session")

    add("repair", "repair a log as opening it does, and say what was done")

    export = add("export", "write a session as one document")
    export.add_argument("--format", choices=("md", "html", "json", "otel"), default="md")
    export.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")

    fork = add("fork", "start a new session with a copy of another")
    cut = fork.add_mutually_exclusive_group()
    cut.add_argument("--at", metavar="EVENT", help="copy up to the event with this id")
    cut.add_argument(
        "--prompt", type=positive, metavar="N", help="copy the first N prompts and their work"
    )
    cut.add_argument("--turn", type=positive, dest="prompt", default=HIDDEN, help=HIDDEN)
    fork.add_argument("--name", metavar="NAME", help="the name of the new session")

    add("delete", "move a session to the trash")
    add("trash", "list deleted sessions", takes_id=False)
    add("restore", "restore a deleted session")


def run(args: Arguments) -> int:
    try:
        return COMMANDS[args.action](Archive(os.environ, cwd=_find_cwd()), args)
    except TrimtabError as error:
        return report_error(error, as_json=args.json)


def _find_cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder has been removed
        return None
