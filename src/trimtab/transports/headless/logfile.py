"""The diagnostic log file of one process."""

import os
import sys
import time

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.ids import timestamp

_LEVELS = {"none": 0, "error": 1, "default": 1, "warning": 2, "info": 3, "debug": 4, "all": 5}
_EVENT_LEVELS = {
    "session.error": 1,
    "model.call_failure": 1,
    "session.warning": 2,
    "assistant.turn_retry": 2,
    "session.start": 3,
    "session.resume": 3,
    "session.info": 3,
    "session.shutdown": 3,
    "user.message": 3,
    "assistant.turn_end": 3,
    "tool.execution_start": 3,
    "tool.execution_complete": 3,
}
_NAMES = ("", "ERROR", "WARNING", "INFO", "DEBUG", "ALL")
_MAX_LINE = 2000


class LogFile:
    """Writes events up to a level to `process-<time>-<pid>.log`, created with the first one.

    `debug` adds all durable events, `all` the ephemeral ones, too. If the file cannot be written,
    one line on standard error says so, and the run continues.
    """

    def __init__(self, folder: str, level: str) -> None:
        self._folder = folder
        self._level = _LEVELS[level]
        self._fd: int | None = None
        self._broken = False

    def on_event(self, event: Event, line: bytes) -> None:
        level = _EVENT_LEVELS.get(event.type, 5 if event.ephemeral else 4)
        if level <= self._level and not self._broken:
            text = line.decode("utf-8", "replace")[:_MAX_LINE]
            self._write(f"{timestamp()} [{_NAMES[level]}] {text}\n")

    def _write(self, text: str) -> None:
        try:
            if self._fd is None:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                name = f"process-{int(time.time() * 1000)}-{os.getpid()}.log"
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._fd = os.open(os.path.join(self._folder, name), flags, 0o600)
            os.write(self._fd, text.encode())
        except OSError as error:
            self._broken = True
            print(f"Cannot write a log to {self._folder}: {error.strerror}.", file=sys.stderr)
