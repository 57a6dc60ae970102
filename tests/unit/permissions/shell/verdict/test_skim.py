"""Commands in a text that is too much to be read."""

import pytest

from trimtab.permissions.shell.verdict.skim import MOST, skim


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ls", ["ls"]),
        ("ls -l; rm x", ["ls -l", "rm x"]),
        ("a && b || c | d & e", ["a", "b", "c", "d", "e"]),
        ("a\nb", ["a", "b"]),
        ("(a) { b; } `c` ! d", ["a", "b", "c", "d"]),
        ("sudo rm x", ["sudo rm x"]),
        ("x; sudo rm y", ["x", "sudo rm y"]),
        ("a 1 2 3 4 5", ["a 1 2 3"]),
        ("ls; ls; ls", ["ls"]),
        ("bash '-c' 'rm x'", ["bash", "rm x"]),
        ("'$x' 'rm' y; \"ls\"", ["ls"]),
        ("", []),
    ],
)
def test_words_where_a_command_may_begin_are_found_once(text: str, lines: list[str]) -> None:
    assert [" ".join(found.words) for found in skim(text)] == lines


def test_what_is_found_counts_for_rules_that_deny_only() -> None:
    (found,) = skim("/bin/git push a b")
    assert (found.identifier, found.base) == ("/bin/git", "git push")
    assert found.words == ("/bin/git", "push", "a", "b")
    assert found.shadow
    assert not found.read_only
    assert not found.literal


def test_no_more_than_so_many_are_found() -> None:
    assert len(skim(";".join(f"a{i}" for i in range(MOST - 1)))) == MOST - 1
    many = skim(";".join(f"a{i}" for i in range(MOST + 2)))
    assert (len(many), many[-1].base) == (MOST, f"a{MOST - 1}")
