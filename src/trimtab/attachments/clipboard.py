"""Reads the clipboard with the program the desktop has for it: an image, else text."""

import shutil
from collections.abc import Sequence

import msgspec

from trimtab.contracts.errors import ConfigurationError, UsageError

IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp")
SECONDS = 5.0
LARGEST = 64 * 1024 * 1024


class Reader(msgspec.Struct, frozen=True):
    """A program: how it lists the types there are, gives one of them, and gives text."""

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
"""In the order they are tried; those without types give text only."""


def read_clipboard() -> bytes:
    """What the clipboard holds: the bytes of an image, or text in UTF-8."""
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
    """What a program prints; nothing if it fails, as it does where there is no desktop."""
    import subprocess

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
    return done.stdout[:LARGEST] if done.returncode == 0 else b""
