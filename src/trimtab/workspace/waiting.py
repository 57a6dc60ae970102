"""Recognises a command that has stopped to wait for input from a person."""

import os
import termios
from collections.abc import Iterable

# Numbers of read, readv and of what programs wait for input with (poll, select, epoll).
READS = {"x86_64": {0, 19}, "aarch64": {63, 65}}
POLLS = {"x86_64": {7, 23, 232, 270, 271, 281, 441}, "aarch64": {22, 72, 73, 441}}
PROMPT_ENDS = (b":", b"?", b">", b"$", b"#", b"%", b"]", b")")


def awaits_input(
    pids: Iterable[int], stdin: str, *, last_line: bytes, terminal: int | None
) -> bool:
    """Whether one of the processes sleeps reading what `stdin` names (a link as /proc shows it).

    Sleeping in a read of it is certain. Waiting for any of several things counts if the terminal is
    in raw mode, as editors and menus have it, or the last line looks like a prompt.
    """
    machine = os.uname().machine
    reads, polls = READS.get(machine, set()), POLLS.get(machine, set())
    asking = looks_like_prompt(last_line) or (terminal is not None and is_raw(terminal))
    for pid in pids:
        call, first = current_call(pid)
        if call in reads and link(pid, first) in (stdin, "/dev/tty"):
            return True
        if call in polls and asking and link(pid, 0) == stdin:
            return True
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


def is_raw(terminal: int) -> bool:
    """Whether keys reach the program one by one."""
    try:
        return not termios.tcgetattr(terminal)[3] & termios.ICANON
    except termios.error:
        return False
