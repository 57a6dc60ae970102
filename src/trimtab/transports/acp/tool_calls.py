"""Tool calls as the client shows them: kind, title, locations, diffs, output."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.parts import FileEdit, ToolInvocation

MAX_DIFF = 4 * 1024 * 1024
"""Characters of text before and after, over which a file is listed without its diff."""
MAX_DIFFS = 200
MAX_TITLE = 200

KINDS: Mapping[str, str] = {
    "view": "read",
    "create": "edit",
    "edit": "edit",
    "apply_patch": "edit",
    "web_fetch": "fetch",
    "fetch_copilot_cli_documentation": "fetch",
    "session_store_sql": "search",
    "exit_plan_mode": "switch_mode",
}
"""The protocol's kind of tools whose category has several."""
CATEGORY_KINDS: Mapping[str, str] = {"shell": "execute", "search": "search", "agent": "think"}
"""The protocol's kind of categories; all others are `other`."""

TITLES: Mapping[str, tuple[str, str]] = {
    "view": ("Read", "path"),
    "create": ("Create", "path"),
    "edit": ("Edit", "path"),
    "glob": ("Find files", "pattern"),
    "grep": ("Search for", "pattern"),
    "rg": ("Search for", "pattern"),
    "web_fetch": ("Fetch", "url"),
    "skill": ("Skill", "skill"),
    "task": ("Agent", "description"),
    "ask_user": ("Question:", "question"),
}
"""The verb and the most telling argument in the title of a call."""

ReadBlob = Callable[[str], str | None]
"""Returns the text of a stored file by its digest; None if it is not text or not stored."""


def find_kind(call: ToolInvocation) -> str:
    """Return the kind by which a client marks a call; a remote tool may do anything."""
    if call.server:
        return "other"
    return KINDS.get(call.name) or CATEGORY_KINDS.get(call.category, "other")


def describe_title(call: ToolInvocation, cwd: str) -> str:
    """Return the title of a call, which shows its command or file."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    if call.name == "bash" and arguments.get("command"):
        return shorten(str(arguments["command"]))
    if call.name == "exit_plan_mode":
        return "Leave plan mode"
    if call.server or call.name not in TITLES:
        return shorten(call.title)
    verb, name = TITLES[call.name]
    if call.agent is not None:
        verb = f"{verb} {call.agent.name}:"
    value = str(arguments.get(name) or "")
    if name == "path" and value:
        value = show_path(os.path.join(cwd, value), cwd)
    return shorten(f"{verb} {value}".rstrip())


def shorten(text: str) -> str:
    """Return the first line of a text, at most `MAX_TITLE` characters."""
    first, *more = text.strip().split("\n", 1)
    if len(first) > MAX_TITLE:
        return f"{first[: MAX_TITLE - 1]}…"
    return f"{first} …" if more else first


def show_path(path: str, cwd: str) -> str:
    """Return a path relative to the working directory if it is below it."""
    path = os.path.normpath(path)
    return os.path.relpath(path, cwd) if path.startswith(cwd.rstrip("/") + "/") else path


def find_locations(call: ToolInvocation, cwd: str) -> list[JsonObject]:
    """Return the files a call reads or changes, as absolute paths."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    found: dict[str, JsonObject] = {}
    named = arguments.get("path")
    if isinstance(named, str) and named and not call.server:
        path = os.path.normpath(os.path.join(cwd, named))
        found[path] = {"path": path}
        lines = arguments.get("view_range")
        if isinstance(lines, list) and lines and isinstance(lines[0], int) and lines[0] > 0:
            found[path]["line"] = lines[0]
    for edit in call.edits:
        found.setdefault(edit.path, {"path": edit.path})
    return list(found.values())


def merge_edits(edits: tuple[FileEdit, ...]) -> list[FileEdit]:
    """Return one edit for each path: from its first state to its last."""
    merged: dict[str, FileEdit] = {}
    for edit in edits:
        first = merged.get(edit.path)
        if first is None:
            merged[edit.path] = edit
        else:
            merged[edit.path] = FileEdit(
                path=edit.path, before=first.before, after=edit.after, created=first.created
            )
    return list(merged.values())


def build_diffs(call: ToolInvocation, read: ReadBlob) -> list[JsonObject]:
    """Return the exact texts before and after of each file that a call changed.

    A new file has no text before. Files that are binary, very large or no longer stored have no
    diff; the locations of the call still name them.
    """
    diffs: list[JsonObject] = []
    for edit in merge_edits(call.edits)[:MAX_DIFFS]:
        before = None if edit.created else read(edit.before or "")
        after = read(edit.after) if edit.after else ""
        if after is None or (before is None and not edit.created):
            continue
        if len(after) + len(before or "") > MAX_DIFF:
            continue
        diff: JsonObject = {"type": "diff", "path": edit.path, "newText": after}
        if before is not None:
            diff["oldText"] = before
        diffs.append(diff)
    return diffs


def text_content(text: str) -> JsonObject:
    return {"type": "content", "content": {"type": "text", "text": text}}


def fence(text: str, language: str = "") -> str:
    """Return a text as a fenced block of Markdown, whatever the text contains."""
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def build_content(call: ToolInvocation, diffs: list[JsonObject]) -> list[JsonObject]:
    """Return the content of a call: its diffs, and its output or error."""
    content = list(diffs)
    text = call.error if call.ended and call.state != "completed" else call.output
    text = text or call.output
    if call.name == "bash" and text.strip():
        content.append(text_content(fence(text, "console")))
    elif text.strip() and not (diffs and call.state == "completed"):
        content.append(text_content(text))
    return content


def build_raw_output(call: ToolInvocation) -> Any:
    output: JsonObject = {"content": call.output}
    if call.error:
        output["error"] = call.error
    if call.exit_code is not None:
        output["exitCode"] = call.exit_code
    return output
