"""Describes the paragraphs of a conversation as single lines, and finds those with some words."""

from collections.abc import Sequence

import msgspec

from trimtab.contracts.text import neutralise
from trimtab.session.records import read_records
from trimtab.session.transcript import Entry, read_transcript

LONGEST_LINE = 300
BEFORE_MATCH = 30
"""Characters shown before the word that was found."""
_MARKS = {"user": "> ", "call": "● ", "result": "│ ", "reasoning": "∴ ", "note": "· "}


def read_entries(log: str) -> list[Entry]:
    """Return the paragraphs of a session that have a text, without control characters."""
    return [
        msgspec.structs.replace(entry, text=neutralise(entry.text))
        for entry in read_transcript(read_records(log))
        if entry.text.strip()
    ]


def find_entries(entries: Sequence[Entry], query: str) -> list[tuple[int, str]]:
    """Return the numbers of the paragraphs that contain all words, each with a line about it."""
    words = query.lower().split()
    found = []
    for number, entry in enumerate(entries):
        text = f"{entry.heading} {entry.text}".lower()
        if all(word in text for word in words):
            found.append((number, describe_entry(entry, LONGEST_LINE, words[0] if words else "")))
    return found


def describe_entry(entry: Entry, longest: int, word: str = "") -> str:
    """Return a paragraph as one line, marked as in the conversation, from near a word on."""
    mark = _MARKS.get(entry.kind, "")
    if entry.kind in ("call", "result"):
        mark += f"{neutralise(entry.heading)} "
    at = entry.text.lower().find(word) if word else 0
    start = at - BEFORE_MATCH if at > 2 * BEFORE_MATCH else 0
    words = " ".join(entry.text[start : start + longest].split())
    return f"{mark}{'… ' if start else ''}{words}"
