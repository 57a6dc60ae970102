"""Finds in a fenced command's output what the fence kept it from doing."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from trimtab.contracts.permission import Policy
from trimtab.permissions.paths import is_inside
from trimtab.permissions.reach import find_rule
from trimtab.permissions.shell.verdict.analysis import Analysis

Effect = Literal["read", "write", "run", "do", "connect to", "signal", "exceed"]
LINES = 400
"""The number of lines of output that are searched, from its end."""
_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file system|EACCES|EPERM|EROFS",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file or directory|cannot access", re.IGNORECASE)
_HOST = re.compile(
    r"(?:could not resolve host:?|connect to(?: host)?|resolving|connecting to) '?([\w.-]+)",
    re.IGNORECASE,
)
_OFFLINE = re.compile(
    r"address family not supported|network is unreachable|name resolution|could not resolve|"
    r"couldn't connect to server|name or service not known|EAFNOSUPPORT",
    re.IGNORECASE,
)
_SIGNAL = re.compile(r"\bkill\b.*?\(?(\d+)\)?")
_LIMIT = re.compile(r"^<stopped by the fence: (.*)>$")
_WRITING = re.compile(
    r"cannot (?:create|touch|remove|make|move|unlink|overwrite|change|set|preserve)|unable to "
    r"create|could ?n[o']t (?:create|write|open .* for writing)|for writing|writing|mkdir|"
    r"\b(?:create|write|unlink|rename)\b|setting|changing|open '.*', (?:flags|mode)|fatal: Unable",
    re.IGNORECASE,
)
_RUNNING = re.compile(r"^(?:bash|sh|env|xargs|timeout|nice): |\b(?:run|exec|execute)\b")
_SCRIPT = re.compile(r"(?:.*: )?([^:]+): [^:]+: bad interpreter: ")
"""Bash blames the interpreter of a script that it may not start."""
_QUOTED = re.compile("['\"\u2018`]([^'\"\u2019`]+)['\"\u2019`]")


class Attempt(msgspec.Struct, frozen=True):
    """An effect that a command was kept from."""

    effect: Effect
    target: str

    def __str__(self) -> str:
        return f"{self.effect} {self.target}"


def find_attempts(
    output: str, exit_code: int, names: Sequence[str], cwd: str, readable: Sequence[str]
) -> list[Attempt]:
    """Return what a command tried to do, each effect once.

    A command that failed is searched for every sign; of one that succeeded only the lines count
    that its own programs (`names`) print about themselves, since files may hold such words, too.
    """
    found: dict[Attempt, None] = {}
    starts = tuple(f"{name}: " for name in (*names, "bash", "sh", "/bin/sh"))
    for line in output.split("\n")[-LINES:]:
        if exit_code == 0 and not line.startswith(starts) and not line.startswith("<stopped by"):
            continue
        for attempt in _read_line(line.strip(), cwd, readable):
            found[attempt] = None
    return list(found)


def describe(attempts: Sequence[Attempt]) -> str:
    """Return words for a question: `write a.txt, connect to example.com`."""
    words = ", ".join(map(str, attempts[:3]))
    return f"{words} and {len(attempts) - 3} more" if len(attempts) > 3 else words


def may_leave(attempts: Sequence[Attempt], analysis: Analysis, policy: Policy) -> bool:
    """Return True if a rule that allows a line means what the fence kept it from.

    A rule for a part of it does not, if the line surely only reads and tried to do anything else.
    What it runs may be a program that it names by a path.
    """
    named = all(find_rule(found, policy) is not None for found in analysis.commands)
    if named or any(found.doubtful for found in analysis.commands):
        return True
    places = {os.path.realpath(place) for found in analysis.commands for place in found.places}
    programs = [attempt.target for attempt in attempts if attempt.effect == "run"]
    return not any(attempt.effect in ("write", "signal") for attempt in attempts) and all(
        os.path.realpath(os.path.join(policy.cwd, program)) in places for program in programs
    )


def _read_line(line: str, cwd: str, readable: Sequence[str]) -> Iterator[Attempt]:
    if match := _LIMIT.match(line):
        yield Attempt("exceed", f"a limit ({match[1]})")
        return
    host = _HOST.search(line)
    if _OFFLINE.search(line):
        yield Attempt("connect to", host[1] if host else "the network")
        return
    refused = _REFUSED.search(line)
    if not refused and not _MISSING.search(line):
        return
    if refused and (match := _SIGNAL.search(line)):
        yield Attempt("signal", f"process {match[1]}")
        return
    script = _SCRIPT.match(line)
    path = script[1] if script else _find_path(line)
    where = os.path.join(cwd, os.path.expanduser(path)) if path else ""
    if not refused:
        if where and not is_inside(where, readable):
            yield from _find_hidden(line, path, where)
        return
    if not where:
        yield Attempt("do", f'something that was refused with "{line[:100].rstrip(".")}"')
        return
    effect: Effect = "run" if script else _find_effect(line, where, readable)
    if _may_anyway(effect, where):
        yield Attempt(effect, path)


def _find_hidden(line: str, path: str, where: str) -> Iterator[Attempt]:
    """Bubblewrap does not show what may not be read: it is missing inside, but not outside."""
    if os.path.exists(where):
        yield Attempt("read", path)
    elif os.path.isdir(os.path.dirname(where)) and _RUNNING.search(line):
        yield Attempt("write", path)


def _find_path(line: str) -> str:
    if quoted := _QUOTED.findall(line):
        return str(quoted[-1])
    before = _REFUSED.split(_MISSING.split(line)[0])[0].rstrip(": (-")
    last = before.rpartition(": ")[2]
    return last.strip()


def _find_effect(line: str, where: str, readable: Sequence[str]) -> Effect:
    if _WRITING.search(line):
        return "write"
    if os.path.isdir(where) or not os.path.exists(where):
        return "read" if os.path.exists(where) else "write"
    if os.access(where, os.X_OK) and (is_inside(where, readable) or _RUNNING.search(line)):
        return "run"
    return "write" if is_inside(where, readable) and line.startswith("bash: ") else "read"


def _may_anyway(effect: Effect, where: str) -> bool:
    """Return False for what this user may not do in any case: then it was not the fence."""
    if effect == "read":
        return os.access(where, os.R_OK)
    if effect == "run":
        return os.access(where, os.X_OK)
    parent = os.path.dirname(where)
    return os.access(where if os.path.exists(where) else parent, os.W_OK)
