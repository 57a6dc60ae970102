"""What `trimtab undo`, `redo` and `rewind` share: arguments, preview, outcome."""

import os
from typing import TYPE_CHECKING, Any

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.text import count
from trimtab.runtime.undo_text import describe_plan, summarise_plan
from trimtab.undo.closed_session import (
    ClosedSession,
    Mode,
    Plan,
    Rewound,
    UndoRequest,
    find_session,
    open_closed_session,
)

if TYPE_CHECKING:
    import argparse

CONFLICT = 1
"""The exit code when something could not be taken back."""


def run(action: str, argv: list[str]) -> int:
    """Do what one of the three commands says; returns the exit code."""
    args = build_parser(action).parse_args(argv)
    try:
        session_id = find_session(os.environ, args.session, os.getcwd())
        with open_closed_session(os.environ, session_id) as past:
            return rewind(past, args) if action == "rewind" else take_back(past, action, args)
    except TrimtabError as error:
        if not args.json:
            raise
        print_json({"error": {"message": error.message, "exitCode": error.exit_code}}, indent=None)
        return error.exit_code


def take_back(past: ClosedSession, action: str, args: "argparse.Namespace") -> int:
    files = tuple(_absolute(path) for path in args.file or ())
    request = UndoRequest(turn=args.turn, files=files, hunk=args.hunk)
    if args.hunk is not None and len(files) != 1:
        raise UsageError("--hunk needs one file; name it with --file.")
    plan = past.history.plan_redo(request) if action == "redo" else past.history.plan_undo(request)
    if not args.preview:
        plan = past.history.apply(plan)
        past.write_index()
    return show(past, plan, args)


def rewind(past: ClosedSession, args: "argparse.Namespace") -> int:
    if args.turn is None:
        for point in past.points():
            text = " ".join(point.text.split())[:70]
            print(f"{point.turn:>4}  {point.timestamp[:19]}  {text}")
        return 0
    mode: Mode = "conversation" if args.conversation else "files" if args.files else "both"
    if args.preview:
        if mode == "conversation":
            raise UsageError("--conversation changes no files, so there is nothing to preview.")
        return show(past, past.history.plan_undo(UndoRequest(turn=args.turn, since=True)), args)
    rewound = past.rewind(args.turn, mode)
    past.write_index()
    return show_rewound(past, rewound, args)


def show_rewound(past: ClosedSession, rewound: Rewound, args: "argparse.Namespace") -> int:
    if rewound.plan is not None:
        return show(past, rewound.plan, args, removed=rewound.events_removed)
    if args.json:
        print_json(
            {"session": past.folder.id, "eventsRemoved": rewound.events_removed}, indent=None
        )
    else:
        events = count(rewound.events_removed, "event")
        print(f"Went back to before turn {args.turn}: {events} set aside.")
    return 0


def show(past: ClosedSession, plan: Plan, args: "argparse.Namespace", removed: int = 0) -> int:
    code = CONFLICT if plan.problems else 0
    if args.json:
        print_json(document(past, plan, args, removed), indent=None)
        return code
    lines = list(describe_plan(plan, past.history, diffs=args.preview or args.diff))
    lines += summarise_plan(plan, preview=args.preview)
    if removed:
        lines.append(f"{count(removed, 'event')} of the conversation set aside.")
    if not args.preview and plan.action != "redo" and any(one.is_needed for one in plan.files):
        lines.append("Take that back with: trimtab redo")
    for line in lines:
        print(line)
    return code


def document(
    past: ClosedSession, plan: Plan, args: "argparse.Namespace", removed: int
) -> dict[str, Any]:
    return {
        "session": past.folder.id,
        "action": plan.action,
        "turn": plan.turn,
        "preview": bool(args.preview),
        "eventsRemoved": removed,
        "changed": [one.path for one in plan.files if one.is_needed],
        "conflicts": [{"path": one.path, "reason": one.problem} for one in plan.problems],
        "leftAlone": list(plan.left),
    }


def build_parser(action: str) -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(prog=f"trimtab {action}", description=ABOUT[action])
    parser.add_argument(
        "session", nargs="?", metavar="SESSION", help="id or name; else the last one of this folder"
    )
    parser.add_argument("--turn", type=int, metavar="N", help="which turn, counted from 1")
    parser.add_argument(
        "--preview", "--dry-run", action="store_true", help="show the diff, change nothing"
    )
    parser.add_argument("--diff", action="store_true", help="show the diff of what is done")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    if action == "rewind":
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--conversation", action="store_true", help="only the conversation")
        what.add_argument("--files", action="store_true", help="only the files")
        what.add_argument("--both", action="store_true", help="both (what is done anyway)")
    else:
        parser.add_argument("--file", action="append", metavar="PATH", help="only this file")
        parser.add_argument("--hunk", type=int, metavar="N", help="only this hunk of the file")
    return parser


ABOUT = {
    "undo": "Take back what a turn did to files, shell commands included. Exit code 1: conflicts.",
    "redo": "Take back the last undo or rewind of files. Exit code 1: conflicts.",
    "rewind": "Go back to before a turn, in conversation and files. Without --turn: list them.",
}


def _absolute(path: str) -> str:
    """The path as it is recorded: its folder without links, its own name as it is."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
