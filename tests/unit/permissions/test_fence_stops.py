"""What the output of a fenced command says that the fence kept it from."""

import os
from pathlib import Path

import pytest

from trimtab.permissions.fence_stops import LINES, Attempt, describe, find_attempts


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a")
    (tmp_path / "ws" / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "ws" / "tool").chmod(0o755)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("b")
    (tmp_path / "other" / "prog").write_text("#!/bin/sh\n")
    (tmp_path / "other" / "prog").chmod(0o755)
    return tmp_path


def found(place: Path, output: str, code: int = 1, *names: str) -> list[str]:
    ws = str(place / "ws")
    return [str(each) for each in find_attempts(output, code, names, ws, (ws,))]


@pytest.mark.parametrize(
    ("line", "attempt"),
    [
        ("touch: cannot touch 'made': Read-only file system", "write made"),
        ("mkdir: cannot create directory \u2018made\u2019: Permission denied", "write made"),
        ("bash: made: Permission denied", "write made"),
        ("bash: a.txt: Permission denied", "write a.txt"),
        ("rm: cannot remove 'a.txt': Operation not permitted", "write a.txt"),
        ("Error: EACCES: permission denied, open 'a.txt'", "read a.txt"),
        ("Error: EROFS: read-only file system, mkdir 'made'", "write made"),
        ("bash: ./tool: Permission denied", "run ./tool"),
        ("bash: line 1: ./tool: /bin/sh: bad interpreter: Permission denied", "run ./tool"),
        ("cat: ../other/b.txt: Permission denied", "read ../other/b.txt"),
        ("ls: cannot open directory '../other': Permission denied", "read ../other"),
        ("env: '../other/prog': Permission denied", "run ../other/prog"),
        ("ls: cannot access '../other/b.txt': No such file or directory", "read ../other/b.txt"),
        ("bash: ../other/new: No such file or directory", "write ../other/new"),
        ("kill: (4711): Operation not permitted", "signal process 4711"),
        ("bash: kill: (12) - Operation not permitted", "signal process 12"),
        ("curl: (6) Could not resolve host: example.com", "connect to example.com"),
        (
            "ssh: connect to host example.org port 22: Network is unreachable",
            "connect to example.org",
        ),
        ("ping: socket: Address family not supported by protocol", "connect to the network"),
        ("Temporary failure in name resolution", "connect to the network"),
        ("<stopped by the fence: more than 60 seconds>", "exceed a limit (more than 60 seconds)"),
        ("Permission denied", 'do something that was refused with "Permission denied"'),
    ],
)
def test_a_line_of_a_failed_command_names_what_it_tried(
    place: Path, line: str, attempt: str
) -> None:
    assert found(place, f"some output\n{line}\n") == [attempt]


@pytest.mark.parametrize(
    "line",
    [
        "all is well",
        "connecting to example.com",
        "cat: a-missing-file: No such file or directory",
        "cat: ../nowhere/at/all: No such file or directory",
        "cat: ../other/missing: No such file or directory",
        "kill: (4711): No such process",
    ],
)
def test_other_failures_are_not_the_fences(place: Path, line: str) -> None:
    assert found(place, line) == []


def test_what_this_user_may_not_do_anyway_was_not_the_fence(place: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may do everything; run this as another user")
    (place / "other" / "b.txt").chmod(0)
    assert found(place, "cat: ../other/b.txt: Permission denied") == []
    (place / "other").chmod(0o500)
    assert found(place, "touch: cannot touch '../other/new': Permission denied") == []
    (place / "other").chmod(0o700)


def test_each_attempt_is_named_once_in_the_order_of_the_output(place: Path) -> None:
    lines = [f"touch: cannot touch '{name}': Permission denied" for name in "yxy"]
    assert found(place, "\n".join(lines)) == ["write y", "write x"]


def test_only_the_end_of_a_long_output_is_searched(place: Path) -> None:
    line = "touch: cannot touch 'made': Permission denied"
    assert found(place, "\n".join([line, *["."] * (LINES - 1)])) == ["write made"]
    assert found(place, "\n".join([line, *["."] * LINES])) == []


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("git: cannot create 'made': Permission denied", True),
        ("bash: made: Permission denied", True),
        ("/bin/sh: made: Permission denied", True),
        ("<stopped by the fence: too much output>", True),
        ("touch: cannot touch 'made': Permission denied", False),
        ("log says: git: cannot create 'made': Permission denied", False),
    ],
)
def test_of_a_command_that_succeeded_only_its_own_words_count(
    place: Path, line: str, counts: bool
) -> None:
    assert bool(found(place, line, 0, "git")) is counts


def test_a_question_names_three_attempts_and_counts_the_others() -> None:
    attempts = [Attempt("write", name) for name in "abcdefg"]
    assert describe(attempts[:1]) == "write a"
    assert describe(attempts[:3]) == "write a, write b, write c"
    assert describe(attempts) == "write a, write b, write c and 4 more"
