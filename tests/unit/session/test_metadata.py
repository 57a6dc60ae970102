from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.errors import ConfigurationError
from trimtab.session.metadata import parse, render

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(st.characters(), max_size=40)
)
KEYS = st.sampled_from(["id", "cwd", "git_root", "summary_count", "name", "x"])


@given(st.dictionaries(KEYS, VALUES))
def test_what_is_written_is_read_back(metadata: dict[str, Any]) -> None:
    assert parse(render(metadata)) == metadata


@given(st.dictionaries(KEYS, st.text(st.characters(exclude_categories=["Cs"]), max_size=40)))
def test_any_yaml_reader_understands_it(metadata: dict[str, str]) -> None:
    text = render(metadata).decode()
    read = yaml.safe_load(text) or {}
    # PyYAML reads the two halves of an escaped pair as two characters; other readers do not.
    plain = {key: value for key, value in metadata.items() if value.isprintable()}
    assert {key: read[key] for key in plain} == plain


def test_a_file_of_the_real_program_is_read() -> None:
    text = b"""\
id: 5f0c8a1e-2b7d-4c3a-9e1f-0a1b2c3d4e5f
cwd: /home/me/my project
git_root: /home/me/my project
branch: feature/x#1
summary_count: 2
created_at: 2025-11-15T20:42:00.123Z
updated_at: '2025-11-15T20:43:00.000Z'
user_named: false
summary: |
  Fix the: test

  and more
"""
    assert parse(text) == {
        "id": "5f0c8a1e-2b7d-4c3a-9e1f-0a1b2c3d4e5f",
        "cwd": "/home/me/my project",
        "git_root": "/home/me/my project",
        "branch": "feature/x#1",
        "summary_count": 2,
        "created_at": "2025-11-15T20:42:00.123Z",
        "updated_at": "2025-11-15T20:43:00.000Z",
        "user_named": False,
        "summary": "Fix the: test\n\nand more\n",
    }


def test_a_simple_file_needs_no_yaml_parser() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from trimtab.session.metadata import parse;"
        'assert parse(b\'id: abc\\ncwd: /a b\\nname: "x: y"\\n'
        "created_at: 2025-11-15T20:42:00.123Z\\nsummary_count: 0\\nuser_named: false\\n');"
        "assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "text",
    [b"a: [", b"- 1\n- 2\n", b"just text", b"a: !!python/none x", b"\0", b"a: &b [1]\nc: *b"],
)
def test_what_makes_no_sense_is_a_configuration_error(text: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"workspace\.yaml"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("5", 5),
        ("-5", -5),
        ("007", 7),
        ("5x", "5x"),
        ("plain text", "plain text"),
        ('"quoted: text"', "quoted: text"),
        ('["a", 1]', ["a", 1]),
        ('{"a": 1}', {"a": 1}),
        ("'single'", "single"),
        ("a:b", "a:b"),
        ("a #b", "a"),
        ("a#b", "a#b"),
        ("2025-11-15", "2025-11-15"),
        ("2025-11-15T20:42:00.123Z", "2025-11-15T20:42:00.123Z"),
        ('"\\ud800"', "\ud800"),
        ("~", None),
        ("|\n  a\n  b", "a\nb\n"),
        (">-\n  a\n  b", "a b"),
        ("!!timestamp 2025-11-15", "2025-11-15"),
        ("!!timestamp 2025-11-15T20:42:00.123456Z", "2025-11-15T20:42:00.123Z"),
        ("!!timestamp 2025-11-15 20:42:00", "2025-11-15T20:42:00.000Z"),
    ],
)
def test_values_are_read_as_yaml_reads_them(text: str, value: Any) -> None:
    assert parse(f"before: x\nkey: {text}\nafter: y\n".encode()) == {
        "before": "x",
        "key": value,
        "after": "y",
    }


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("", {}),
        ("---\n# comment\n\n  \na: 1\n", {"a": 1}),
        ("a:1\n", None),
        ("a b: 1\n", {"a b": 1}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("a: b: c\n", None),
        ("a: b:\n", None),
        ("1: x\n", {"1": "x"}),
        ("a: '2025'\nb: 2025-11-15\n", {"a": "2025", "b": "2025-11-15"}),
    ],
)
def test_lines_of_other_writers_are_left_to_the_yaml_parser(
    text: str, metadata: dict[str, Any] | None
) -> None:
    if metadata is None:
        with pytest.raises(ConfigurationError, match=r"workspace\.yaml"):
            parse(text.encode())
    else:
        assert parse(text.encode()) == metadata


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", '"é"'),
        ("\x85", '"\\u0085"'),
        ("\u2028", '"\\u2028"'),
        ("\ud800", '"\\ud800"'),
        ("é\ud800", '"é\\ud800"'),
        ("\ufeff", '"\\ufeff"'),
        ("🙂", '"🙂"'),
        ("\U000e0001", '"\U000e0001"'),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
    ],
)
def test_values_are_written_on_one_line(value: Any, text: str) -> None:
    assert render({"a": value, "b": 1}) == f"a: {text}\nb: 1\n".encode()
