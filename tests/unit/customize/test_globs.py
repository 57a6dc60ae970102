"""Globs match the files they should, and no glob takes long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.customize.fields import Fields
from trimtab.customize.globs import expand_braces, matches, matches_everything


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("**/*.py", ["a.py", "a/b/c.py"], ["a.pyc", "py"]),
        ("*.py", ["a.py"], ["a/b.py"]),
        ("src/**", ["src/a", "src/a/b"], ["srcs/a"]),
        ("src/", ["src/a/b"], ["lib/src"]),
        ("/src/*.c", ["src/a.c"], ["a/src/a.c"]),
        ("./a/**/b", ["a/b", "a/x/y/b"], ["b"]),
        ("**.ts", ["a.ts", "x/a.ts"], ["a.tsx"]),
        ("{src,lib}/**/*.{ts,tsx}", ["src/a.ts", "lib/x/y.tsx"], ["app/a.ts", "src/a.js"]),
        ("file?.[ch]", ["file1.c", "filex.h"], ["file.c", "file1.o"]),
        ("[!a]*", ["b"], ["a", "b/c"]),
        ("a+b(1).txt", ["a+b(1).txt"], ["aab1.txt"]),
    ],
)
def test_patterns_mean_what_people_mean(glob: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matches(path, [glob])] == []
    assert [path for path in no if matches(path, [glob])] == []


@pytest.mark.parametrize(
    ("written", "yes", "no"),
    [
        ("**/*.{ts,tsx}", ["a.ts", "b/c.tsx"], ["a.js", "tsx}"]),
        ("src/{a,b}/*.py, docs/**", ["src/b/x.py", "docs/y"], ["src/c/x.py"]),
        ("**/*.ts, !**/*.test.ts", ["a.ts"], ["a.test.ts", "b/a.test.ts", "a.js"]),
        ("!vendor/**", ["a.c", "src/b.c"], ["vendor/a.c"]),
        ("**, !**/*.{md,txt}", ["a.c"], ["a.md", "b/c.txt"]),
    ],
)
def test_a_line_of_patterns_means_what_people_mean(
    written: str, yes: list[str], no: list[str]
) -> None:
    globs = Fields({"applyTo": written}, "f.md").names("applyTo") or ()
    assert not matches_everything(globs)
    assert [path for path in yes if not matches(path, globs)] == []
    assert [path for path in no if matches(path, globs)] == []


@pytest.mark.parametrize(
    "glob",
    [
        "**/" * 50 + "x",
        "*a" * 60 + "b",
        "a**" * 40,
        "{a,b}" * 40,
        "[" * 200,
        "**/a" * 30,
        "{" * 500,
    ],
)
def test_a_pattern_made_to_be_slow_is_not(glob: str) -> None:
    began = time.process_time()
    matches("a" * 250, [glob])
    matches("/".join(["a"] * 60), [glob])
    assert time.process_time() - began < 1


@given(st.text(alphabet="ab*?[]{}!,/.^\\", max_size=20), st.text(alphabet="ab/.", max_size=12))
def test_no_pattern_makes_matching_fail(glob: str, path: str) -> None:
    assert matches(path, [glob]) in (True, False)


@given(st.text(alphabet="ab{},", max_size=30))
def test_braces_are_expanded_to_a_bounded_list(glob: str) -> None:
    assert 0 < len(expand_braces(glob)) < 200


@given(st.lists(st.sampled_from(["a", "b.py", "c"]), min_size=1, max_size=5))
def test_everything_below_is_matched_at_every_depth(names: list[str]) -> None:
    path = "/".join(names)
    assert matches(path, ["**"])
    assert matches(path, [f"**/{names[-1]}"])
    assert matches(path, [path])
