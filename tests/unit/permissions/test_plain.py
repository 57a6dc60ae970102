"""Commands that are harmless as they are written."""

import pytest

from trimtab.permissions.plain import find_plain_programs, is_literal
from trimtab.permissions.shell.verdict.analyse import analyse


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("ls -la src", True),
        ("grep 'a*b' x | wc -l", True),
        ('echo "plain words"', True),
        ("ls; pwd && id", True),
        ("ls *", False),
        ("echo $HOME", False),
        ('echo "$HOME"', False),
        ('echo "`id`"', False),
        ("ls > x", False),
        ("ls ~", False),
        ("A=b ls", False),
        ("ls; A=b", False),
        ("ls --color=auto", True),
        ("A+=b", False),
        ("ls [a]", False),
        ("(ls)", False),
        ("ls \\x", False),
    ],
)
def test_a_command_is_literal_if_nothing_is_expanded(text: str, literal: bool) -> None:
    assert is_literal(text) is literal


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("ls -la", {"ls"}),
        ("cat a | head -3 | wc -l", {"cat", "head", "wc"}),
        ("ls *", None),
        ("git status", None),
        ("/tmp/ls", None),
        ("rm a", None),
        ("grep -r x .", None),
        ("grep -nri x .", None),
        ("grep --recursive x .", None),
        ("grep --dereference-recursive x .", None),
        ("grep -n x a", {"grep"}),
        ("diff -r a b", None),
        ("diff a b", {"diff"}),
        ("ls -R", {"ls"}),
        ("grep -flist a", None),
        ("grep -if./list a", None),
        ("hexdump -flist a", None),
        ("date -rlist", None),
        ("diff -Xlist a b", None),
        ("du -aXlist", None),
        ("grep -o x a", {"grep"}),
        ("diff -u a b", {"diff"}),
        ("date -u", {"date"}),
    ],
)
def test_only_listed_programs_that_print_are_plain(text: str, programs: set[str] | None) -> None:
    found = find_plain_programs(text, analyse(text, "/srv/project", "/home/me"))
    assert found == (None if programs is None else frozenset(programs))
