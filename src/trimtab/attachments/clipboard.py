"""Reads an image or text from the clipboard, with the desktop's program for it."""

import shutil
import subprocess
from collections.abc import Sequence

import msgspec

from trimtab.contracts.errors import ConfigurationError, UsageError

IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp")
SECONDS = 5.0
MAX_SIZE = 64 * 1024 * 1024


class Reader(msgspec.Struct, frozen=True):
    """A clipboard program: its commands to list types, to read a type, and to read text."""

    types: tuple[str, ...]
    image: tuple[str, ...]
    text: tuple[str, ...]


READERS = (
    Reader(
        ("wl-paste", "--list-types"),
        ("wl-paste", "--no-newline", "--type"),
        ("wl-paste", "--no-newline"),
    ),
    Reader(
        ("xclip", "-selection", "clipboard", "-o", "-t", "TARGETS"),
        ("xclip", "-selection", "clipboard", "-o", "-t"),
        ("xclip", "-selection", "clipboard", "-o"),
    ),
    Reader((), (), ("xsel", "--clipboard", "--output")),
    Reader((), (), ("pbpaste",)),
)
"""In the order they are tried; programs without types only read text."""


def read_clipboard() -> bytes:
    """Return the contents of the clipboard: the bytes of an image, or text in UTF-8."""
    found = [reader for reader in READERS if shutil.which(reader.text[0])]
    if not found:
        programs = ", ".join(reader.text[0] for reader in READERS)
        raise ConfigurationError(
            f"The clipboard cannot be read: none of {programs} is installed; install one."
        )
    for reader in found:
        data = _read(reader)
        if data:
            return data
    raise UsageError("The clipboard is empty or cannot be reached; copy something first.")


def _read(reader: Reader) -> bytes:
    if reader.types:
        offered = _run(reader.types).decode("utf-8", "replace").split()
        kind = next((kind for kind in IMAGES if kind in offered), None)
        if kind is not None:
            return _run((*reader.image, kind))
    return _run(reader.text)


def _run(command: Sequence[str]) -> bytes:
    """Return the output of a program; empty if it fails, as it does without a desktop."""

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout[:MAX_SIZE] if done.returncode == 0 else b""
