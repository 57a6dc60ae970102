"""`trimtab worktrees`: list and remove the git worktrees made for sessions."""

import os

from trimtab.cli.streams import print_json

HELP = "list or remove the git worktrees made for sessions"


def run(argv: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="trimtab worktrees", description=HELP.capitalize() + ".")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="those of this repository (what is done anyway)")
    remove = commands.add_parser("remove", help="refused if anything would be lost")
    remove.add_argument("name", metavar="NAME")
    args = parser.parse_args(argv)
    return remove_one(args.name) if args.command == "remove" else show_list(as_json=args.json)


def remove_one(name: str) -> int:
    from trimtab.checkout.session_worktrees import Worktrees

    removed = Worktrees(os.environ, os.getcwd()).remove(name)
    print(f"Removed {removed.path} and branch {removed.branch}.")
    return 0


def show_list(*, as_json: bool) -> int:
    from trimtab.checkout.session_worktrees import Worktrees, reasons_to_keep

    worktrees = Worktrees(os.environ, os.getcwd())
    rows = []
    for one in worktrees.list():
        owner = worktrees.owner(one)
        reasons = [*reasons_to_keep(one)]
        if owner is not None:
            reasons.insert(0, f"in use by process {owner.pid}")
        rows.append(
            {
                "name": one.name,
                "path": one.path,
                "branch": one.branch,
                "session": one.session,
                "keep": reasons,
            }
        )
    if as_json:
        print_json({"worktrees": rows}, indent=None)
        return 0
    for row in rows:
        print(f"{row['name']:<20} {row['branch']:<28} {'; '.join(row['keep']) or 'can be removed'}")
    return 0
