"""Recognises a command that has stopped to wait for a person."""

import os
import termios
from collections.abc import Iterable

import msgspec

# Numbers of read, readv and of what programs wait for input with (poll, select, epoll).
READS = {"x86_64": {0, 19}, "aarch64": {63, 65}}
POLLS = {"x86_64": {7, 23, 232, 270, 271, 281, 441}, "aarch64": {22, 72, 73, 441}}
PROMPT_ENDS = (b":", b"?", b">", b"$", b"#", b"%", b"]", b")")
INPUT = "input"
SIGNAL = "a signal to continue"


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """A command's streams: links as /proc shows them, our side of its terminal if it has one."""

    stdin: str
    output: str
    terminal: int | None = None


def awaited(pids: Iterable[int], streams: Streams, last_line: bytes) -> str:
    """What the processes wait for, if it is something that only comes from outside, or nothing.

    Sleeping in a read of the standard input is certain. Waiting for any of several things counts if
    the terminal is in raw mode, as editors and menus have it, or if the last line looks like a
    prompt, or if the input is what was given for output: programs without a terminal try that.
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
    """The system call a process sleeps in and its first argument; (-1, -1) if it runs."""
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
    """Whether keys reach the program one by one."""
    if terminal is None:
        return False
    try:
        return not termios.tcgetattr(terminal)[3] & termios.ICANON
    except termios.error:
        return False
