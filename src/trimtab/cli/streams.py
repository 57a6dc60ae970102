"""Opens, writes and flushes the standard streams so that none of them causes a traceback."""

import errno
import io
import os
import sys
from typing import TextIO

CLOSED = 141
"""The exit code when nobody reads the output."""


def prepare_streams() -> None:
    """Open descriptors that the caller closed, and write UTF-8 whatever the locale says.

    Without this the first file the program opens would take the number of a closed standard
    stream, and everything printed would be written into that file.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # Read-only, so that writing to a closed standard output fails.
            os.open(os.devnull, os.O_WRONLY if fd == 2 else os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def say(message: str) -> None:
    """Print a line to standard error, if that is possible."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def print_json(value: object, indent: int | None = 2) -> None:
    """Print a JSON document in ASCII, so that bytes of a path that are not UTF-8 are escaped."""
    import json

    import msgspec

    print(json.dumps(msgspec.to_builtins(value), indent=indent))


def flush_streams(exit_code: int) -> int:
    """Write the buffers while a failure can still be reported; return the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        exit_code = report_lost_output(error)
    try:
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
    return exit_code


def report_lost_output(error: OSError) -> int:
    """Print why standard output cannot be written; return the exit code for that."""
    discard(sys.stdout)
    if error.errno in (errno.EPIPE, errno.EBADF):
        return CLOSED
    say(f"Standard output cannot be written: {error.strerror or error}; fix that and run again.")
    return 1


def discard(stream: TextIO) -> None:
    """Redirect a stream to nowhere, so that the flush at exit does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1 if stream is sys.stdout else 2)
    os.close(null)


def is_debugging() -> bool:
    """Return True if tracebacks are wanted."""
    return "TRIMTAB_DEBUG" in os.environ
