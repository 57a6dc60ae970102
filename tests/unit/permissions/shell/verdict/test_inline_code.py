"""Programs that run code which is not read."""

import pytest

from permissionkit import rules
from trimtab.permissions.shell.verdict.analysis import Found
from trimtab.permissions.shell.verdict.inline_code import (
    find_renamed,
    runs_inline_code,
    starts_inline_code,
)


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("python", True),
        ("python -c x", True),
        ("python3 -cx", True),
        ("python3.12 a.py -c", True),
        ("python -", True),
        ("python a.py", False),
        ("python -m timeit x", True),
        ("python -m pytest", False),
        ("python cx", False),
        ("node --eval=x", True),
        ("node eval", True),
        ("node --evals", False),
        ("node a=--eval", False),
        ("node a.js", False),
        ("docker run a", True),
        ("docker exec a b", True),
        ("docker", False),
        ("docker ps", False),
        ("docker -run", False),
        ("docker running", False),
        ("ssh", True),
        ("ssh a b", True),
        ("vim a", True),
        ("ls", False),
        ("ls -c", False),
        ("make --eval=x", True),
        ("make -f-", True),
        ("make -sf-", True),
        ("make --file=-", True),
        ("make --makefile=/dev/stdin", True),
        ("make -f /dev/fd/0", True),
        ("make -f/proc/self/fd/0", True),
        ("make -f own.mk", False),
        ("make --file=own.mk", False),
        ("make", False),
        ("make all", False),
    ],
)
def test_a_program_that_is_given_code_runs_what_nobody_read(line: str, runs: bool) -> None:
    words = tuple(line.split())
    found = Found(identifier=words[0], read_only=False, base=words[0], words=words)
    assert runs_inline_code(found) is runs


def test_a_subcommand_in_the_name_does_not_hide_the_program() -> None:
    words = ("docker", "run", "a")
    found = Found(identifier="docker run", read_only=False, base="docker run", words=words)
    assert runs_inline_code(found)
    words = ("git", "run", "a")
    found = Found(identifier="git run", read_only=False, base="git run", words=words)
    assert not runs_inline_code(found)


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (("frob", "sh", "-c", "x"), True),
        (("frob", "-q", "/bin/bash", "-ec", "x"), True),
        (("frob", "python3", "-c", "x"), True),
        (("frob", "perl", "-ne", "x"), True),
        (("frob", "eval", "x"), True),
        (("frob", "-e", 'system("x")'), True),
        (("frob", "--eval", "a;b"), True),
        (("frob", "sh", "x.sh"), False),
        (("frob", "python3", "x.py"), False),
        (("frob", "-e", "name"), False),
        (("frob", "-c", "conf/a.toml"), False),
        (("frob",), False),
        (("grep", "-e", "(a;b)"), False),
        ((), False),
    ],
)
def test_an_unknown_program_may_be_given_what_runs_code(
    words: tuple[str, ...], starts: bool
) -> None:
    found = Found(identifier="frob", read_only=False, base="frob", words=words)
    assert starts_inline_code(found) is starts


@pytest.mark.parametrize(
    "line",
    ["python3 -i", "python3 -m code", "perl -MPOSIX x", "node --import data:text/x", "gp -q"],
)
def test_code_also_comes_by_modules_addresses_and_conversations(line: str) -> None:
    words = tuple(line.split())
    assert runs_inline_code(Found(identifier=words[0], read_only=False, base=words[0], words=words))


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("cp /usr/bin/git g", "git"),
        ("ln -s /bin/rm x", "rm"),
        ("cp /usr/bin/env x", ""),
        ("cp git g", ""),
        ("ls /usr/bin/git", ""),
    ],
)
def test_a_denied_program_is_found_that_gets_another_name(line: str, program: str) -> None:
    words = tuple(line.split())
    found = Found(identifier=words[0], read_only=False, base=words[0], words=words)
    assert find_renamed([found], rules("shell(git push)", "shell(rm:*)", "shell")) == program
