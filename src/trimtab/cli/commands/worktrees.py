"""`trimtab worktrees`: list and remove the git worktrees made for sessions."""

import os

from trimtab.checkout.session_worktrees import Worktrees, reasons_to_keep
from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.streams import print_json


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the worktrees of this repository")
    remove = actions.add("remove", "remove a worktree and its branch, if nothing would be lost")
    remove.add_argument("name", metavar="NAME")
    for part in (parser, listing):
        part.add_json()


def run(args: Arguments) -> int:
    if args.action == "remove":
        removed = Worktrees(os.environ, os.getcwd()).remove(args.name)
        print(f"Removed {removed.path} and branch {removed.branch}.")
    else:
        print_list(as_json=args.json)
    return 0


def print_list(*, as_json: bool) -> None:
    worktrees = Worktrees(os.environ, os.getcwd())
    rows = []
    for worktree in worktrees.list():
        owner = worktrees.owner(worktree)
        reasons = [*reasons_to_keep(worktree)]
        if owner is not None:
            reasons.insert(0, f"in use by process {owner.pid}")
        rows.append(
            {
                "name": worktree.name,
                "path": worktree.path,
                "branch": worktree.branch,
                "session": worktree.session,
                "keep": reasons,
            }
        )
    if as_json:
        print_json({"worktrees": rows}, indent=None)
        return
    if not rows:
        print("There are no worktrees of sessions here; start one with --worktree.")
    for row in rows:
        print(f"{row['name']:<20} {row['branch']:<28} {'; '.join(row['keep']) or 'can be removed'}")
