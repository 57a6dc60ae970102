"""Functions that a command can call, and those that may call themselves."""

import pytest

from trimtab.permissions.shell.grammar.functions import (
    MAX_FUNCTIONS,
    find_callable,
    find_recursion,
)
from trimtab.permissions.shell.grammar.parser import parse
from trimtab.permissions.shell.grammar.syntax import Effort, Script


def read(text: str) -> Script:
    script, problem = parse(text, Effort(20_000))
    assert problem is None
    return script


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f() { a; }; b", ["f", "f"]),
        ("b; f() { a; }; f", ["", "f", "f"]),
        ("f() { a; }; b; g() { c; }; d", ["f", "f", "f g", "f g"]),
        ("f() { a; }", ["f"]),
        ("f() { a; }; a/b() { c; }; d", ["f", "f", "f"]),
        ("f() { a; }; unset f; b", ["", "", ""]),
        ("f() { a; }; echo 'x;unset'", ["", ""]),
        ("f() { a; }; command_not_found_handle() { b; }; c", ["", "", ""]),
        ("if a; then f() { b; }; fi; c", ["", "", ""]),
        ("a", [""]),
    ],
)
def test_a_function_can_be_called_once_it_is_there_for_certain(text: str, found: list[str]) -> None:
    assert [" ".join(sorted(names)) for names in find_callable(read(text))] == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", ""),
        ("f() { a; }; f", ""),
        ("f() { f; }", "f"),
        ("f() { a; }; g() { f; g; }", "g"),
        ("f() { g; }; g() { f; }", "f"),
        ("a() { b; }; b() { c; }; c() { d; }; d() { b; }", "b"),
        ("d() { c; }; c() { b; }; b() { a; }; a() { d; }", "a"),
        ("f() { g; }; g() { a; }", ""),
        ("f() { eval 'a; f'; }", "f"),
        ("f() { a; f; b; }", "f"),
        ("f() { a; }; f() { f; }", "f"),
    ],
)
def test_a_function_that_may_call_itself_is_found(text: str, name: str) -> None:
    assert find_recursion(read(text)) == name


def test_among_very_many_functions_any_may_call_itself() -> None:
    many = "".join(f"f{index}() {{ a; }}; " for index in range(MAX_FUNCTIONS))
    assert find_recursion(read(many)) == ""
    assert find_recursion(read(f"{many} e() {{ a; }}")) == "e"
