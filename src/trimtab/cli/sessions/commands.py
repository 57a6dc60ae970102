"""The actions of `trimtab sessions`: each prints its result and returns the exit code."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trimtab.cli.sessions import text
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.text import neutralise
from trimtab.host.session_state import describe_state, read_state
from trimtab.session.archive import (
    Archive,
    Cut,
    Finding,
    Record,
    Report,
    json_line,
    read_transcript,
    replace_file,
)


def show_list(archive: Archive, args: Namespace) -> int:
    summaries = archive.list()
    if args.json:
        return _print_json({"sessions": summaries})
    _print(text.session_table(summaries))
    return 0


def show(archive: Archive, args: Namespace) -> int:
    summary = archive.summary(args.id)
    records = archive.all_records if args.all or args.events else archive.last_turn
    if args.json:
        if args.follow:
            raise UsageError("--follow and --json cannot be used together; leave one out.")
        _write_json_array(f'{{"session":{_json(summary)},"events":', records(args.id))
        sys.stdout.write("}\n")
        return 0
    if args.events:
        _print(text.event_line(record) for record in records(args.id))
        return 0
    _print(text.header(summary))
    end = 0

    def track_end(shown: Iterable[Record]) -> Iterable[Record]:
        nonlocal end
        for record in shown:
            end = record.offset + len(record.line) + 1
            yield record

    _print(text.paragraph(entry) for entry in read_transcript(track_end(records(args.id))))
    if args.follow:
        _follow(archive, args.id, end)
    return 0


def show_requests(archive: Archive, args: Namespace) -> int:
    """Show the requests of a session with their details, open questions, and the queue."""
    state = read_state(archive.folder(args.id))
    if args.json:
        return _print_json(state)
    _print([neutralise(line) for line in describe_state(state)] or ["No requests yet."])
    return 0


def _follow(archive: Archive, session_id: str, start: int) -> None:
    try:
        for entry in read_transcript(archive.follow(session_id, start)):
            _print([text.paragraph(entry)])
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass  # Ctrl-C is how a person stops watching


def verify(archive: Archive, args: Namespace) -> int:
    if args.all == bool(args.id):
        raise UsageError("Name the session to verify, or use --all.")
    ids = [summary.id for summary in archive.list()] if args.all else [args.id]
    reports: list[Report | dict[str, str]] = []
    for session_id in ids:
        try:
            reports.append(archive.verify(session_id))
        except TrimtabError as error:
            if not args.all:
                raise
            reports.append({"id": session_id, "problem": error.message})
    healthy = [
        isinstance(report, Report) and report.is_intact and report.can_be_opened
        for report in reports
    ]
    if args.json:
        documents = [_report_document(report) for report in reports]
        _print_json({"sessions": documents} if args.all else documents[0])
    else:
        for report in reports:
            _print(text.report(report))
    return 0 if all(healthy) else 1


def repair(archive: Archive, args: Namespace) -> int:
    findings = archive.repair(args.id)
    if args.json:
        session_id = archive.folder(args.id).id
        return _print_json({"id": session_id, "repaired": [_finding(item) for item in findings]})
    _print([item.sentence for item in findings] or ["Nothing to repair."])
    return 0


def export(archive: Archive, args: Namespace) -> int:
    pieces = archive.export(args.id, args.format)
    if args.output not in (None, "-"):
        path = os.path.abspath(args.output)
        _write_file(path, (piece.encode("utf-8", "replace") for piece in pieces))
        if args.json:
            return _print_json({"file": path, "format": args.format})
        return 0
    if args.json and args.format != "json":
        return _print_json({"format": args.format, "text": "".join(pieces)})
    for piece in pieces:
        sys.stdout.write(piece)
    return 0


def _write_file(path: str, chunks: Iterable[bytes]) -> None:
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as device:  # a pipe or terminal cannot be replaced
            device.writelines(chunks)
    else:
        replace_file(path, chunks)


def fork(archive: Archive, args: Namespace) -> int:
    folder = archive.fork(args.id, Cut(event=args.at, turn=args.prompt), name=args.name)
    if args.json:
        return _print_json({"id": folder.id, "path": folder.path})
    _print([f"Forked to {folder.id}. Go on with: trimtab --resume={folder.id}"])
    return 0


def delete(archive: Archive, args: Namespace) -> int:
    entry = archive.delete(args.id)
    if args.json:
        return _print_json(entry)
    _print([f"Moved {entry.id} to the trash. Undo with: trimtab sessions restore {entry.id}"])
    return 0


def show_trash(archive: Archive, args: Namespace) -> int:
    entries = archive.deleted()
    if args.json:
        return _print_json({"sessions": entries})
    _print(text.trash_table(entries))
    return 0


def restore(archive: Archive, args: Namespace) -> int:
    entry = archive.restore(args.id)
    if args.json:
        return _print_json({"id": entry.id, "path": entry.path})
    _print([f"Restored {entry.id}."])
    return 0


COMMANDS: dict[str, Callable[[Archive, Namespace], int]] = {
    "list": show_list,
    "show": show,
    "requests": show_requests,
    "verify": verify,
    "repair": repair,
    "export": export,
    "fork": fork,
    "delete": delete,
    "trash": show_trash,
    "restore": restore,
}


def report_error(error: TrimtabError, *, as_json: bool) -> int:
    print(text.one_line(error.message), file=sys.stderr)
    if as_json:
        _print_json({"error": {"message": error.message, "exitCode": error.exit_code}})
    return error.exit_code


def _finding(finding: Finding) -> dict[str, Any]:
    return {**msgspec.to_builtins(finding), "sentence": finding.sentence}


def _report_document(report: Report | dict[str, str]) -> dict[str, Any]:
    if isinstance(report, dict):
        return {**report, "intact": False}
    document: dict[str, Any] = msgspec.to_builtins(report)
    for name in ("damage", "notes"):
        findings: list[Finding] = getattr(report, name)
        document[name] = [{**msgspec.to_builtins(item), "sentence": item.fact} for item in findings]
    return {**document, "intact": report.is_intact}


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _print_json(document: Any) -> int:
    sys.stdout.write(_json(document) + "\n")
    return 0


def _json(document: Any) -> str:
    return json.dumps(msgspec.to_builtins(document))


def _write_json_array(before: str, records: Iterable[Record]) -> None:
    """Write the events of a log one by one, because it may be large."""
    sys.stdout.write(before + "[")
    separator = "\n"
    for record in records:
        sys.stdout.write(separator + json_line(record.line))
        separator = ",\n"
    sys.stdout.write("]")
