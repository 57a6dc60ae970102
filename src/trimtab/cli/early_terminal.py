"""Keeps the kernel from echoing and changing what is typed while the program still loads."""

import os
import sys
from typing import Any

_ALONE = {"-p", "--prompt", "-h", "--help", "-v", "--version", "--plain", "--screen-reader"}
_original: list[Any] = []


def silence_keyboard(argv: list[str]) -> None:
    """Turn echo and line editing of the terminal off, if a conversation with live rows may begin.

    Signals stay as they are, so that Ctrl-C works before keys are handled.
    """
    if _ALONE & set(argv) or os.environ.get("TERM", "dumb") == "dumb":
        return
    if not (os.isatty(0) and os.isatty(1)):
        return
    import termios

    try:
        _original[:] = [termios.tcgetattr(0)]
        attributes = termios.tcgetattr(0)
        attributes[0] &= ~termios.ICRNL
        attributes[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(0, termios.TCSANOW, attributes)
    except termios.error:
        _original.clear()


def original_attributes() -> Any:
    """Return the attributes that the terminal had, or None if they were not changed."""
    return _original[0] if _original else None


def restore_keyboard() -> None:
    """Give the terminal its attributes back. Does nothing if they were not changed."""
    if _original and "termios" in sys.modules:
        import termios

        attributes = _original.pop()
        try:
            termios.tcsetattr(0, termios.TCSADRAIN, attributes)
        except termios.error:
            return
