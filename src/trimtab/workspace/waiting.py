"""Detects that a command waits for input."""

import os
import termios
from collections.abc import Iterable

import msgspec

# Numbers of read and readv, and of the calls that wait for input (poll, select, epoll).
READS = {"x86_64": {0, 19}, "aarch64": {63, 65}}
POLLS = {"x86_64": {7, 23, 232, 270, 271, 281, 441}, "aarch64": {22, 72, 73, 441}}
PROMPT_ENDS = (b":", b"?", b">", b"$", b"#", b"%", b"]", b")")
INPUT = "input"
SIGNAL = "a signal to continue"


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """A command's streams: their links in /proc, and our side of its terminal if it has one."""

    stdin: str
    output: str
    terminal: int | None = None


def find_awaited(pids: Iterable[int], streams: Streams, last_line: bytes) -> str:
    """Return what the processes wait for: input, a signal, or nothing from outside.

    A process that sleeps in a read of standard input certainly waits for it. A poll counts if the
    terminal is in raw mode, as in editors and menus, or if the last line looks like a prompt, or if
    it reads from its output's stream, as programs without a terminal do.
    """
    machine = os.uname().machine
    reads, polls = READS.get(machine, set()), POLLS.get(machine, set())
    asking = looks_like_prompt(last_line) or is_raw(streams.terminal)
    inputs = {streams.stdin, "/dev/tty"} if streams.stdin else {"/dev/tty"}
    suspended = []
    for pid in pids:
        call, first = current_call(pid)
        source = link(pid, 0)
        if call in reads and link(pid, first) in inputs:
            return INPUT
        if call in polls and ((asking and source == streams.stdin) or source == streams.output):
            return INPUT
        suspended.append(is_suspended(pid))
    return SIGNAL if suspended and all(suspended) else ""


def is_suspended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def current_call(pid: int) -> tuple[int, int]:
    """Return the system call a process sleeps in and its first argument; (-1, -1) if it runs."""
    try:
        with open(f"/proc/{pid}/syscall", "rb") as file:
            words = file.read().split()
        return int(words[0]), int(words[1], 16)
    except (OSError, ValueError, IndexError):
        return -1, -1


def link(pid: int, descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return ""


def looks_like_prompt(last_line: bytes) -> bool:
    return last_line.strip().endswith(PROMPT_ENDS)


def is_raw(terminal: int | None) -> bool:
    """Return True if a terminal passes each key on at once."""
    if terminal is None:
        return False
    try:
        return not termios.tcgetattr(terminal)[3] & termios.ICANON
    except termios.error:
        return False
