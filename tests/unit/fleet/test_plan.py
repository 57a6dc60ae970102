import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.errors import UsageError
from trimtab.fleet.plan import check_plan, read_plan, read_session_plan
from trimtab.session.todos import read_todos
from trimtab.tools.sql.tool import read_schema


def plan_file(folder: Path, content: Any) -> str:
    path = folder / "plan.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def todo(name: str, *needs: str) -> dict[str, Any]:
    return {"id": name, "title": f"Do {name}", "description": "", "depends_on": list(needs)}


def test_todos_follow_what_they_depend_on_and_else_the_order_of_the_file(tmp_path: Path) -> None:
    rows = [todo("c", "b"), todo("x"), todo("b", "a"), todo("a")]
    found = read_plan(plan_file(tmp_path, {"todos": rows}))
    assert [each.id for each in found] == ["x", "a", "b", "c"]


def test_a_todo_needs_no_more_than_an_id(tmp_path: Path) -> None:
    (found,) = read_plan(plan_file(tmp_path, {"todos": [{"id": "a"}]}))
    assert (found.title, found.description, found.depends_on) == ("a", "", ())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be used"),
        ("[1]", "Expected `object`"),
        ({"todos": "a"}, "Expected `array`"),
        ({"todos": []}, "has no todos; give it at least one"),
        ({"todos": [{"title": "x"}]}, "missing required field `id`"),
        ({"todos": [{"id": 3}]}, "Expected `str`"),
        ({"todos": [todo("a"), todo("a")]}, "has the id 'a' twice"),
        ({"todos": [todo("a"), todo("A")]}, "cannot tell apart"),
        ({"todos": [todo("a", "b")]}, "'a' depends on 'b', which is not in it"),
        ({"todos": [todo("a", "a")]}, "has a cycle (a → a)"),
        ({"todos": [todo("a", "c"), todo("b", "a"), todo("c", "b")]}, "a cycle (a → c → b → a)"),
        ({"todos": [todo("../x")]}, "'../x', which cannot name a branch"),
        ({"todos": [todo("-x")]}, "cannot name a branch"),
        ({"todos": [todo("")]}, "cannot name a branch"),
        ({"todos": [todo("a b")]}, "cannot name a branch"),
        ({"todos": [todo("x.lock")]}, "cannot name a branch"),
        ({"todos": [todo("a..b")]}, "cannot name a branch"),
        ({"todos": [todo("x" * 65)]}, "cannot name a branch"),
        ({"todos": [todo("ü")]}, "cannot name a branch"),
        ({"todos": [todo("a\u001b[2J")]}, "cannot name a branch"),
        ({"todos": [todo(f"t{n}") for n in range(501)]}, "give it at most 500"),
    ],
)
def test_a_wrong_plan_is_told_with_what_to_do(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_plan(plan_file(tmp_path, content))
    assert said in error.value.message
    assert error.value.message.endswith(".")
    assert "\x1b" not in error.value.message


def test_a_plan_that_is_missing_or_no_file_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_plan(str(path))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_plan_or_a_usage_error(data: bytes) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with pytest.raises(UsageError):
            read_plan(file.name)


def test_the_open_todos_of_a_session_are_a_plan(tmp_path: Path) -> None:
    import sqlite3

    path = str(tmp_path / "session.db")
    database = sqlite3.connect(path)
    database.executescript(read_schema())
    database.execute("INSERT INTO todos (id, title, status) VALUES ('a', 'A', 'done')")
    database.execute("INSERT INTO todos (id, title) VALUES ('b', 'B'), ('c', 'C')")
    database.execute("INSERT INTO todo_deps VALUES ('b', 'a'), ('c', 'b')")
    database.commit()
    database.close()
    found = read_session_plan(*read_todos(path))
    assert [(each.id, each.depends_on) for each in found] == [("b", ()), ("c", ("b",))]


def test_a_session_without_todos_gives_no_plan(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no todos"):
        read_session_plan(*read_todos(str(tmp_path / "none.db")))


def test_check_plan_accepts_any_iterable_of_rows() -> None:
    with pytest.raises(UsageError, match="The list has no todos"):
        check_plan(iter(()), "The list")
