"""Attaches files to a prompt: from flags, from `@path` in the text, from the clipboard."""

import os
import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.attachments.clipboard import read_clipboard
from trimtab.attachments.images import BMP, find_type, fit_image
from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import Prompt

CLIPBOARD = "clipboard"
MAX_IMAGE_SIZE = 256 * 1024 * 1024
MAX_MENTIONS = 100
_MENTION = re.compile(r'(?<![\w@/.])@(?:"([^"\n]+)"|((?:\\ |[^\s"\'`<>|])+))(?::(\d+)(?:-(\d+))?)?')
_LINES = re.compile(r"(.+?):(\d+)(?:-(\d+)|:\d+)?")
"""A path, a line, and the last line or, as compilers write it, a column."""

Attachment = dict[str, Any]


def attach(text: str, given: Sequence[str], cwd: str, more: Sequence[str] = ()) -> Prompt:
    """Return a prompt with the files that its flags and its text name. A flag's path must exist.

    A path in the text that is not in `cwd` is also looked up in `more` folders.
    """
    found: dict[str, Attachment] = {}
    for name in given:
        is_clipboard = name == CLIPBOARD and not os.path.exists(os.path.join(cwd, name))
        attachment = _read_clipboard() if is_clipboard else _attach_named(name, cwd)
        found.setdefault(_key(attachment), attachment)
    for path, lines in find_mentions(text, cwd, more):
        attachment = _attach_path(path, lines)
        found.setdefault(_key(attachment), attachment)
    return Prompt(text=text, attachments=tuple(found.values()))


def find_mentions(
    text: str, cwd: str, more: Sequence[str] = ()
) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """Yield existing paths that the text mentions with `@`, each with its range of lines."""
    for match in list(_MENTION.finditer(text))[:MAX_MENTIONS]:
        quoted, plain, first, last = match.groups()
        if quoted:
            candidates = [(quoted, _lines(first, last))]
        else:
            candidates = list(_readings(plain.replace("\\ ", " ")))
        folders = [cwd, *(_resolve(folder, cwd) for folder in more)]
        paths = ((_resolve(n, folder), lines) for folder in folders for n, lines in candidates)
        for path, lines in paths:
            if os.path.isdir(path) or os.path.isfile(path):
                yield path, lines
                break


def _readings(word: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """Yield the possible meanings of a word: a path, with or without lines and punctuation."""
    while word:
        yield word, None
        if match := _LINES.fullmatch(word):
            yield match[1], _lines(match[2], match[3])
        if word[-1] not in ".,;:!?)]}":
            return
        word = word[:-1]


def _lines(first: str | None, last: str | None) -> tuple[int, int] | None:
    return None if first is None else (int(first), int(last or first))


def _resolve(name: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))


def _attach_named(name: str, cwd: str) -> Attachment:
    path = _resolve(name, cwd)
    if not os.path.isdir(path) and not os.path.isfile(path):
        raise UsageError(f"--attachment {name}: no such file or directory; name an existing one.")
    return _attach_path(path, None)


def _attach_path(path: str, lines: tuple[int, int] | None) -> Attachment:
    name = os.path.basename(path) or path
    if os.path.isdir(path):
        return {"type": "directory", "path": path, "displayName": name}
    if image := _attach_image(path, name):
        return {**image, "path": path}
    attachment: Attachment = {"type": "file", "path": path, "displayName": name}
    if lines is not None:
        attachment["lineRange"] = {"start": lines[0], "end": lines[1]}
    return attachment


def read_image(attachment: Attachment) -> bytes | None:
    """Return the image of a client's attachment, from a file or inline; None for anything else."""
    kind, path = attachment.get("type"), attachment.get("path")
    if kind == "file" and isinstance(path, str):
        return _read_image(path)
    data = _decode(attachment) if kind == "blob" else None
    return data if data and find_type(data) else None


def show_image(attachment: Attachment, data: bytes) -> Attachment:
    """Return a client's image in a form that model services accept."""
    named = attachment.get("displayName") or os.path.basename(attachment.get("path") or "")
    shown = _blob(data, str(named or "An attached image"))
    return {**attachment, **shown, "displayName": named or None}


def decode_blob(attachment: Attachment) -> bytes:
    """Return the data of an inline attachment. Raises `UsageError` if it is not base64."""
    data = _decode(attachment)
    if data is None:
        raise UsageError("its data is not base64; encode it.")
    return data


def _decode(attachment: Attachment) -> bytes | None:

    encoded = attachment.get("data")
    try:
        return a2b_base64(encoded) if isinstance(encoded, str) and encoded.isascii() else None
    except Error:
        return None


def _attach_image(path: str, name: str) -> Attachment | None:
    data = _read_image(path)
    return None if data is None else _blob(data, name)


def _read_image(path: str) -> bytes | None:
    """Read a file if its content is an image; None otherwise."""

    if not os.path.isfile(path):
        return None  # reading a pipe would wait for a writer forever
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            bitmap = head[:2] == b"BM" and os.fstat(file.fileno()).st_size <= MAX_IMAGE_SIZE
            if find_type(head) is None and not bitmap:
                return None
            data = head + file.read(MAX_IMAGE_SIZE)
    except OSError:
        return None
    return None if bitmap and find_type(data) != BMP else data


def _blob(data: bytes, name: str) -> Attachment:

    fitted, kind = fit_image(data, name)
    encoded = b2a_base64(fitted, newline=False).decode("ascii")
    return {"type": "blob", "data": encoded, "mimeType": kind, "displayName": name}


def _read_clipboard() -> Attachment:
    data = read_clipboard()
    if find_type(data) is not None:
        return _blob(data, CLIPBOARD)
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    end = {"line": len(lines) - 1, "character": len(lines[-1])}
    return {
        "type": "selection",
        "filePath": CLIPBOARD,
        "displayName": CLIPBOARD,
        "text": text,
        "selection": {"start": {"line": 0, "character": 0}, "end": end},
    }


def _key(attachment: Attachment) -> str:
    """Return a key that is the same for equal attachments."""
    path = attachment.get("path")
    return f"{path}:{attachment.get('lineRange')}" if path else str(attachment)
