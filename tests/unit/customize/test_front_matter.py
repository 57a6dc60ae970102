"""The head of a Markdown file is read as YAML reads it, with or without the parser."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab.customize.front_matter import read_simple, split_document

CHARACTERS = "abcdeABCDE0123456789 -_.,:;#'\"[]{}*&!|>%@`~/\\()?<=+tTrRuUeEyYnNoOfF\t"
VALUES = st.text(alphabet=CHARACTERS, min_size=1, max_size=20)
KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,10}", fullmatch=True)


@given(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4))
def test_what_is_read_without_the_parser_is_what_the_parser_reads(
    pairs: list[tuple[str, str]],
) -> None:
    head = "\n".join(f"{key}: {value}" for key, value in pairs)
    simple = read_simple(head)
    if simple is not None:
        assert simple == yaml.safe_load(head)


LINES = st.text(alphabet="ab :#-[]\"'> |\t", max_size=8)


@given(st.lists(st.tuples(KEYS, st.sampled_from([">-", "|", ">", "|-", "[]"]), LINES), max_size=3))
def test_indented_texts_and_lists_are_read_as_the_parser_reads_them(
    fields: list[tuple[str, str, str]],
) -> None:
    head = "".join(f"{key}: {mark}\n  {text}\n\n  b{text}\n" for key, mark, text in fields)
    for candidate in (head, head.replace("\n\n", "\n"), head.rstrip("\n"), f"{head}z: [{head}]"):
        simple = read_simple(candidate)
        if simple:
            assert simple == yaml.safe_load(candidate)


@given(st.lists(LINES, min_size=1, max_size=3))
def test_lists_of_quoted_words_are_read_as_the_parser_reads_them(words: list[str]) -> None:
    head = "tools: [" + ", ".join(f'"{word}"' for word in words) + "]"
    simple = read_simple(head)
    if simple is not None:
        assert simple == yaml.safe_load(head)


@pytest.mark.parametrize(
    "head", ["a: >-\n  b\n  c: d\nz: y\n", "a: |\n  b\n\n    c\n", 'a: ["b", "c: d"]']
)
def test_common_heads_need_no_parser(head: str) -> None:
    simple = read_simple(head)
    assert simple is not None
    assert simple == yaml.safe_load(head)


@pytest.mark.parametrize("word", ["yes", "No", "TRUE", "off", "null", "words and more", "a-b/c.md"])
def test_common_values_need_no_parser(word: str) -> None:
    assert read_simple(f"key: {word}") == yaml.safe_load(f"key: {word}")


def test_a_file_without_a_head_is_all_body() -> None:
    document = split_document("# Title\n---\ntext\n", "f.md")
    assert document.fields == {}
    assert document.body == "# Title\n---\ntext\n"


def test_head_and_body_are_parted_and_the_line_of_the_body_is_known() -> None:
    document = split_document("---\na: b\nlist: [1, 2]\n---\nbody\n", "f.md")
    assert document.fields == {"a": "b", "list": [1, 2]}
    assert document.body == "body\n"
    assert document.body_line == 5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\na: b\nb: [\n---\nbody\n", 4),
        ("---\na: b\n\tb: c\n---\nbody\n", 3),
        ("---\njust text\n---\nbody\n", 2),
        ("---\na: b\nbody without an end\n", 1),
        ("---\na: !!python/object:os.system {}\n---\nbody\n", 2),
    ],
)
def test_a_head_that_cannot_be_read_is_one_problem_with_its_line(text: str, line: int) -> None:
    document = split_document(text, "f.md")
    (problem,) = document.problems
    assert (problem.file, problem.line) == ("f.md", line)
    assert "body" in document.body


def test_a_head_nested_without_end_is_a_problem() -> None:
    document = split_document("---\na: " + "[" * 5000 + "\n---\nbody\n", "f.md")
    assert len(document.problems) == 1


@given(st.text(max_size=200))
def test_no_text_makes_reading_fail(text: str) -> None:
    split_document("---\n" + text, "f.md")
    split_document(text, "f.md")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("name: a\nname: b\n", [("name", 3)]),
        ("tools: [view]\nname: b\ntools: [bash]\n", [("tools", 4)]),
        ("hooks:\n  a: 1\n  b: 2\n  a: 3\n", [("a", 5)]),
        ("all: &x [1]\nagain: *x\n", []),
        ("loop: &x {a: *x}\n", []),
        ("a: 1\nb: {a: 1}\n", []),
        ("a: &x {k: 1}\nb: {<<: *x, k: 2}\n", []),
    ],
)
def test_a_field_that_is_given_twice_is_told_with_its_line(
    head: str, told: list[tuple[str, int]]
) -> None:
    document = split_document(f"---\n{head}---\nbody\n", "f.md")
    assert [(problem.message, problem.line) for problem in document.problems] == [
        (f"the field {name} is given twice: the last one counts", line) for name, line in told
    ]
    assert document.fields
    if told == [("name", 3)]:
        assert document.fields == {"name": "b"}


@pytest.mark.parametrize(
    ("head", "fields", "line"),
    [
        (
            "description:\nglobs: *.py,**/*.pyi\nalwaysApply: false\n",
            {"description": None, "globs": "*.py,**/*.pyi", "alwaysApply": False},
            3,
        ),
        (
            'name: x\ndescription: Use it\'s so: <example>user: "hi"</example> # now\ntools: [view]\n',
            {
                "name": "x",
                "description": 'Use it\'s so: <example>user: "hi"</example> # now',
                "tools": ["view"],
            },
            3,
        ),
    ],
)
def test_what_people_write_without_quotes_is_text(
    head: str, fields: dict[str, object], line: int
) -> None:
    document = split_document(f"---\n{head}---\nbody\n", "f.md")
    assert document.fields == fields
    assert [(problem.line, problem.note) for problem in document.problems] == [(line, True)]
