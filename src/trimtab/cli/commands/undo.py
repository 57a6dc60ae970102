"""`trimtab undo`, `redo` and `rewind`: restore files, and go back in the conversation."""

import os
from typing import Any

from trimtab.cli.command_parser import HIDDEN, Arguments, CommandParser, positive
from trimtab.cli.streams import print_json
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.text import count
from trimtab.undo.closed_session import (
    ClosedSession,
    Mode,
    Plan,
    Rewound,
    UndoRequest,
    find_session,
    open_closed_session,
)
from trimtab.undo.description import describe_plan, summarise_plan

CONFLICT = 1
"""The exit code when a file could not be restored."""


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = "The exit code is 1 if a file could not be restored because of later changes."
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="id or name of a session; the last session of this folder if left out",
    )
    parser.add_argument(
        "--prompt",
        type=positive,
        metavar="N",
        help="the work of the Nth prompt, counted from 1; the last if left out",
    )
    parser.add_argument("--turn", type=positive, dest="prompt", default=HIDDEN, help=HIDDEN)
    parser.add_argument(
        "--preview", "--dry-run", action="store_true", help="show the diff, change nothing"
    )
    parser.add_argument("--diff", action="store_true", help="show the diff of what is done")
    parser.add_json()
    if parser.prog == "trimtab rewind":
        parser.description = (
            "Go back to before a prompt, in conversation and files. Without --prompt: list them."
        )
        part = parser.add_mutually_exclusive_group()
        part.add_argument("--conversation", action="store_true", help="only the conversation")
        part.add_argument("--files", action="store_true", help="only the files")
        part.add_argument("--both", action="store_true", help="both (the default)")
    else:
        parser.add_argument("--file", action="append", metavar="PATH", help="only this file")
        parser.add_argument("--hunk", type=positive, metavar="N", help="only this hunk of the file")


def run(args: Arguments) -> int:
    try:
        session_id = find_session(os.environ, args.session, os.getcwd())
        with open_closed_session(os.environ, session_id) as past:
            return rewind(past, args) if args.command == "rewind" else restore(past, args)
    except TrimtabError as error:
        if not args.json:
            raise
        print_json({"error": {"message": error.message, "exitCode": error.exit_code}}, indent=None)
        return error.exit_code


def restore(past: ClosedSession, args: Arguments) -> int:
    files = tuple(_absolute(path) for path in args.file or ())
    request = UndoRequest(turn=args.prompt, files=files, hunk=args.hunk)
    if args.hunk is not None and len(files) != 1:
        raise UsageError("--hunk needs one file; name it with --file.")
    plan = (
        past.history.plan_redo(request)
        if args.command == "redo"
        else past.history.plan_undo(request)
    )
    if not args.preview:
        plan = past.history.apply(plan)
        past.write_index()
    return show(past, plan, args)


def rewind(past: ClosedSession, args: Arguments) -> int:
    if args.prompt is None:
        for point in past.points():
            text = " ".join(point.text.split())[:70]
            print(f"{point.turn:>4}  {point.timestamp[:19]}  {text}")
        return 0
    mode: Mode = "conversation" if args.conversation else "files" if args.files else "both"
    if args.preview:
        if mode == "conversation":
            raise UsageError("--conversation changes no files, so there is nothing to preview.")
        return show(past, past.history.plan_undo(UndoRequest(turn=args.prompt, since=True)), args)
    rewound = past.rewind(args.prompt, mode)
    past.write_index()
    return show_rewound(past, rewound, args)


def show_rewound(past: ClosedSession, rewound: Rewound, args: Arguments) -> int:
    if rewound.plan is not None:
        return show(past, rewound.plan, args, removed=rewound.events_removed)
    if args.json:
        print_json(
            {"session": past.folder.id, "eventsRemoved": rewound.events_removed}, indent=None
        )
    else:
        events = count(rewound.events_removed, "event")
        print(f"Went back to before prompt {args.prompt}: {events} set aside.")
    return 0


def show(past: ClosedSession, plan: Plan, args: Arguments, removed: int = 0) -> int:
    code = CONFLICT if plan.problems else 0
    if args.json:
        print_json(document(past, plan, args, removed), indent=None)
        return code
    lines = list(describe_plan(plan, past.history, diffs=args.preview or args.diff))
    lines += summarise_plan(plan, preview=args.preview)
    if removed:
        lines.append(f"{count(removed, 'event')} of the conversation set aside.")
    if not args.preview and plan.action != "redo" and any(file.is_needed for file in plan.files):
        lines.append("Reverse that with: trimtab redo")
    for line in lines:
        print(line)
    return code


def document(past: ClosedSession, plan: Plan, args: Arguments, removed: int) -> dict[str, Any]:
    return {
        "session": past.folder.id,
        "action": plan.action,
        "turn": plan.turn,
        "preview": bool(args.preview),
        "eventsRemoved": removed,
        "changed": [file.path for file in plan.files if file.is_needed],
        "conflicts": [{"path": file.path, "reason": file.problem} for file in plan.problems],
        "leftAlone": list(plan.left),
    }


def _absolute(path: str) -> str:
    """Return a path as the recorder writes it: links in its folder resolved, not in its name."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
