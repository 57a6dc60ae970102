"""The `grep` tool."""

import os

import pytest

from toolkit import Bench, saved_text


@pytest.fixture
def tree(bench: Bench) -> Bench:
    bench.write("data.txt", "apple\nbanana\napricot\n")
    bench.write("src/a.py", "def apple():\n    pass\n\n\n\ndef pear():\n    pass\n")
    bench.write("src/b.js", "const Apple = 1\n")
    bench.write(".github/c.yml", "name: apple\n")
    bench.write("build/out.txt", "apple\n")
    bench.write(".gitignore", "build/\n")
    bench.write(".git/config", "apple\n")
    return bench


async def test_content_with_line_numbers_repeats_the_path_as_given(tree: Bench) -> None:
    path = str(tree.path("data.txt"))
    text = await tree.text("grep", pattern="^ap", path=path, output_mode="content", **{"-n": True})
    assert text == f"{path}:1:apple\n{path}:3:apricot"
    text = await tree.text("grep", pattern="^ap", paths="data.txt", output_mode="content")
    assert text == "data.txt:apple\ndata.txt:apricot"


async def test_files_are_the_default_sorted_and_without_ignored_ones(tree: Bench) -> None:
    assert await tree.text("grep", pattern="apple") == "./.github/c.yml\n./data.txt\n./src/a.py"
    ignoring_case = await tree.text("grep", pattern="apple", **{"-i": True})
    assert "./src/b.js" in ignoring_case


async def test_counts(tree: Bench) -> None:
    text = await tree.text("grep", pattern="a", output_mode="count", glob="*.txt")
    assert text == "./data.txt:3"


async def test_context_lines_and_groups(tree: Bench) -> None:
    text = await tree.text(
        "grep", pattern="def ", output_mode="content", paths=["src"], **{"-n": True, "-A": 1}
    )
    assert text == (
        "src/a.py:1:def apple():\nsrc/a.py-2-    pass\n--\n"
        "src/a.py:6:def pear():\nsrc/a.py-7-    pass"
    )


async def test_filters_by_type_and_glob(tree: Bench) -> None:
    assert await tree.text("grep", pattern="pple", type="js") == "./src/b.js"
    assert await tree.text("grep", pattern="pple", glob="*.py") == "./src/a.py"


async def test_a_match_may_span_lines(tree: Bench) -> None:
    assert await tree.text("grep", pattern=r"apple\(\):\n +pass") == "./src/a.py"
    text = await tree.text("grep", pattern=r"apple\(\):.*?pass", multiline=True)
    assert text == "./src/a.py"


async def test_the_head_limit_says_what_it_cut(tree: Bench) -> None:
    text = await tree.text(
        "grep", pattern="a", output_mode="content", head_limit=1, path="data.txt"
    )
    assert text == "data.txt:apple\n<2 more lines; raise head_limit to see more>"


async def test_nothing_found_is_said(tree: Bench) -> None:
    result = await tree.call("grep", pattern="zebra")
    assert (result.kind, result.text) == ("success", "No matches found.")


async def test_an_invalid_expression_gets_the_message_of_ripgrep(tree: Bench) -> None:
    result = await tree.call("grep", pattern="(unclosed")
    assert result.kind == "failure"
    assert "unclosed group" in result.text


@pytest.mark.parametrize("pattern", ["--version", "-e", "--pre=touch owned", "-"])
async def test_a_pattern_is_never_taken_for_an_option(tree: Bench, pattern: str) -> None:
    tree.write("odd.txt", f"x {pattern} y\n")
    assert await tree.text("grep", pattern=pattern, path="odd.txt") == "odd.txt"
    assert not tree.path("owned").exists()


@pytest.mark.parametrize("name", ["--pre", "-", "a:b.txt", "with space", "日本"])
async def test_a_path_is_never_taken_for_an_option(tree: Bench, name: str) -> None:
    tree.write(name, "needle\n")
    text = await tree.text(
        "grep", pattern="needle", path=name, output_mode="content", **{"-n": True}
    )
    assert text.endswith(f"{name}:1:needle")
    assert await tree.text("grep", pattern="needle") == f"./{name}"


async def test_expressions_with_lookaround_work(tree: Bench) -> None:
    text = await tree.text("grep", pattern="ap(?=ricot)", output_mode="content", path="data.txt")
    assert text == "data.txt:apricot"


async def test_missing_and_blocking_paths_are_refused(tree: Bench) -> None:
    os.mkfifo(tree.path("fifo"))
    assert (await tree.call("grep", pattern="x", path="nope")).summary == "Path does not exist"
    assert "FIFO" in await tree.text("grep", pattern="x", path="fifo")
    assert (await tree.call("grep", pattern="nul\0")).kind == "failure"


async def test_large_results_go_to_a_file(tree: Bench) -> None:
    tree.write("many.txt", "a line that matches\n" * 3000)
    text = await tree.text("grep", pattern="matches", output_mode="content", path="many.txt")
    assert text.startswith("Output too large to read at once (")
    head, preview = text.split("\n\nPreview (first 500 chars):\n")
    assert len(preview) == 500
    assert f"Saved to: {tree.files}/" in head
    assert saved_text(text).count("matches") == 3000


async def test_access_names_each_path(tree: Bench) -> None:
    tool = tree.tools["grep"]
    accesses = tool.access({"pattern": "x", "paths": ["src", "/etc"]}, tree)
    assert [access.target for access in accesses] == [str(tree.path("src")), "/etc"]
    assert {access.kind for access in accesses} == {"read"}
    assert not any(access.mutates for access in accesses)


@pytest.mark.parametrize("count", [-5, 10**30])
async def test_any_number_of_lines_of_context_can_be_asked_for(tree: Bench, count: int) -> None:
    options = {"-A": count, "-B": count, "-C": count}
    text = await tree.text(
        "grep", pattern="banana", path="data.txt", output_mode="content", **options
    )
    assert "data.txt:banana" in text
    assert ("apricot" in text) == (count > 0)


async def test_lines_that_end_in_two_characters_end_all_the_same(bench: Bench) -> None:
    bench.write("a.txt", "one apple\r\ntwo\r\n")
    assert await bench.text("grep", pattern="apple$") == "./a.txt"
    assert await bench.text("grep", pattern="(?<=one )apple$") == "./a.txt"
    assert await bench.text("grep", pattern="apple\\r$") == "./a.txt"
