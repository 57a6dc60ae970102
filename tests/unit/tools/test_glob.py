"""The `glob` tool."""

import pytest

from toolkit import Bench


@pytest.fixture
def tree(bench: Bench) -> Bench:
    for name in (
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/deep/d.ts",
        "src/x[1].py",
        "node_modules/e.py",
        ".github/f.py",
        ".git/g.py",
        "skipped.log",
    ):
        bench.write(name, "")
    bench.write(".gitignore", "node_modules\n*.log\n")
    return bench


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("**/*.py", ["./.github/f.py", "./a.py", "./src/b.py", "./src/deep/c.py", "./src/x[1].py"]),
        ("*.py", ["./a.py"]),
        ("./*.py", ["./a.py"]),
        ("src/*.py", ["./src/b.py", "./src/x[1].py"]),
        ("src/**/*.{py,ts}", ["./src/b.py", "./src/deep/c.py", "./src/deep/d.ts", "./src/x[1].py"]),
        ("src/**", ["./src/b.py", "./src/deep/c.py", "./src/deep/d.ts", "./src/x[1].py"]),
        ("src/deep/", ["./src/deep/c.py", "./src/deep/d.ts"]),
        ("**/deep/?.ts", ["./src/deep/d.ts"]),
        ("**/[bc].py", ["./src/b.py", "./src/deep/c.py"]),
        ("**/[!bc].py", ["./.github/f.py", "./a.py"]),
        ("src/b.py", ["./src/b.py"]),
        ("src/x\\[1\\].py", ["./src/x[1].py"]),
        ("{src/b,a}.py", ["./a.py", "./src/b.py"]),
        ("{a,src/**/c}.py", ["./a.py", "./src/deep/c.py"]),
        ("**/*.log", []),
        ("nowhere/*.py", []),
        ("../*/a.py", ["./a.py"]),
    ],
)
async def test_patterns(tree: Bench, pattern: str, wanted: list[str]) -> None:
    text = await tree.text("glob", pattern=pattern)
    assert text.split("\n") == (wanted or ["No files matched the pattern."])


async def test_other_places_and_absolute_patterns(tree: Bench) -> None:
    assert await tree.text("glob", pattern="*.py", paths=["src"]) == "./src/b.py\n./src/x[1].py"
    assert await tree.text("glob", pattern=f"{tree.root}/*.py") == "./a.py"
    assert "/etc/passwd" in (await tree.text("glob", pattern="/etc/pass*")).split("\n")
    assert (await tree.call("glob", pattern="*", path="nope")).summary == "Path does not exist"


async def test_an_unclosed_brace_is_refused(tree: Bench) -> None:
    assert (await tree.call("glob", pattern="{a,b")).summary == "Invalid pattern"


async def test_access_is_where_the_pattern_looks(tree: Bench) -> None:
    assert tree.access("glob", pattern="/etc/*.conf").target == "/etc"
    assert tree.access("glob", pattern="src/**/*.py").target == str(tree.path("src"))
    assert tree.access("glob", pattern="**/*.py").kind == "read"


async def test_names_with_a_colon_are_found(bench: Bench) -> None:
    bench.write("a:b", "")
    assert await bench.text("glob", pattern="*:*") == "./a:b"
