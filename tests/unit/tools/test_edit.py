"""The `edit` tool."""

import asyncio
import os
import stat
from contextlib import suppress

import pytest

from toolkit import Bench


async def test_an_edit_is_reported_with_its_diff_and_line_counts(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\nthree\nfour\nfive\n")
    result = await bench.call("edit", path="a.txt", old_str="two\nthree", new_str="2\nthree\n3b")
    assert result.text == "File a.txt updated with changes."
    assert bench.path("a.txt").read_text() == "one\n2\nthree\n3b\nfour\nfive\n"
    (change,) = result.changes
    assert (change.path, change.lines_added, change.lines_removed, change.created) == (
        str(bench.path("a.txt")),
        2,
        1,
        False,
    )
    assert result.detail is not None
    assert result.detail.split("\n")[3:] == [
        "@@ -1,5 +1,6 @@",
        " one",
        "-two",
        "+2",
        " three",
        "+3b",
        " four",
        " five",
        "",
    ]


async def test_the_diff_shows_a_final_newline_that_was_added(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo")
    result = await bench.call("edit", path="a.txt", old_str="two", new_str="two\n")
    assert result.detail is not None
    assert result.detail.endswith("-two\n\\ No newline at end of file\n+two\n")
    assert (result.changes[0].lines_added, result.changes[0].lines_removed) == (1, 1)


async def test_deleting_the_whole_text_leaves_an_empty_file(bench: Bench) -> None:
    bench.write("a.txt", "one\n")
    assert (await bench.call("edit", path="a.txt", old_str="one\n")).kind == "success"
    assert bench.path("a.txt").read_bytes() == b""
    assert (await bench.call("edit", path="a.txt", old_str="", new_str="x\n")).kind == "success"
    assert bench.path("a.txt").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "wanted"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb", b"a\r\nX\r\nb\r\nc\r\n"),
        (b"a\rb\rc", "b", "b\nX", b"a\rb\rX\rc"),
        (b"a\nb\r\nc\r\nd\n", "b\nc", "b\nc\nX", b"a\nb\r\nc\r\nX\r\nd\n"),
        (b"only", "only", "one\ntwo", b"one\ntwo"),
        (b"a\nb\r\nc\rd", "a\nb\nc\nd", "a\nB\nc\nd", b"a\nB\r\nc\rd"),
        (b"a\r\nb", "b", "", b"a\r\n"),
        (b"\xef\xbb\xbfa\nb\n", "a", "A", b"\xef\xbb\xbfA\nb\n"),
        ("a\r\né\r\n".encode("utf-16"), "é", "è\nê", "a\r\nè\r\nê\r\n".encode("utf-16")),
        ("é = 1\nx\n".encode("cp1252"), "x", "ü", "é = 1\nü\n".encode("cp1252")),
        ("ソース\n表示\n".encode("cp932"), "表示", "カナ", "ソース\nカナ\n".encode("cp932")),
    ],
)
async def test_newlines_and_encodings_are_kept(
    bench: Bench, data: bytes, old: str, new: str, wanted: bytes
) -> None:
    bench.write("a.txt", data)
    result = await bench.call("edit", path="a.txt", old_str=old, new_str=new)
    assert result.kind == "success", result.text
    assert bench.path("a.txt").read_bytes() == wanted


@pytest.mark.parametrize(
    ("text", "encoding", "old", "new"),
    [
        ("é = 1\nx\n", "cp1252", "é", "日"),
        ("é = 1\nx\n", "cp1252", "x", "日"),
        ("é = 1\nx\n", "latin-1", "x", "😀"),
        ("ソース\nかな\nline\n", "cp932", "line", "😀"),
        ("ソース\nかな\nline\n", "cp932", "line", "é"),
    ],
)
async def test_a_character_the_encoding_lacks_is_refused(
    bench: Bench, text: str, encoding: str, old: str, new: str
) -> None:
    data = text.encode(encoding)
    bench.write("a.txt", data)
    result = await bench.call("edit", path="a.txt", old_str=old, new_str=new)
    assert result.kind == "failure"
    assert "which has no character" in result.text
    assert bench.path("a.txt").read_bytes() == data


async def test_several_matches_are_refused_with_their_lines(bench: Bench) -> None:
    bench.write("a.txt", "x\ny\nx\n")
    result = await bench.call("edit", path="a.txt", old_str="x", new_str="z")
    assert (result.kind, result.summary) == ("failure", "Multiple matches found")
    assert "2 times, at lines 1, 3" in result.text
    assert bench.path("a.txt").read_text() == "x\ny\nx\n"


async def test_overlapping_matches_count_as_several(bench: Bench) -> None:
    bench.write("a.txt", "aaa")
    result = await bench.call("edit", path="a.txt", old_str="aa", new_str="b")
    assert result.summary == "Multiple matches found"


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        ("2. def f():\n3.     return 1", "line numbers"),
        ("def f():\n\treturn 1", "white space"),
        ("def f():   \n    return 1", "ends of lines"),
        ("DEF F():", "upper and lower case"),
        ("def f():\\n    return 1", "backslash escapes"),
    ],
)
async def test_a_failed_match_says_why(bench: Bench, old: str, reason: str) -> None:
    bench.write("a.py", "import os\ndef f():\n    return 1\n")
    result = await bench.call("edit", path="a.py", old_str=old, new_str="x")
    assert (result.kind, result.summary) == ("failure", "No match found")
    assert reason in result.text


async def test_a_failed_match_shows_the_nearest_lines(bench: Bench) -> None:
    bench.write("a.py", "".join(f"line {i}\n" for i in range(50)) + "total = compute(a, b)\nend\n")
    result = await bench.call(
        "edit", path="a.py", old_str="total = compute(a, c)\nend", new_str="x"
    )
    assert "lines 51-52" in result.text
    assert "-total = compute(a, c)\n+total = compute(a, b)" in result.text
    far = await bench.call("edit", path="a.py", old_str="total = compute(b, b)", new_str="x")
    assert "+total = compute(a, b)" in far.text
    nothing = await bench.call("edit", path="a.py", old_str="§§§§", new_str="x")
    assert nothing.summary == "No match found"


async def test_an_edit_without_effect_is_refused(bench: Bench) -> None:
    bench.write("a.txt", "x\n")
    same = await bench.call("edit", path="a.txt", old_str="x", new_str="x")
    empty = await bench.call("edit", path="a.txt", old_str="", new_str="y")
    assert (same.kind, empty.kind) == ("failure", "failure")


async def test_paths_that_are_no_files_are_refused(bench: Bench) -> None:
    os.mkfifo(bench.path("fifo"))
    missing = await bench.call("edit", path="nope", old_str="x", new_str="y")
    assert missing.text == "Path nope does not exist. Please provide a valid path."
    assert missing.summary == "Path does not exist"
    assert (await bench.call("edit", path=".", old_str="x", new_str="y")).kind == "failure"
    assert "FIFO" in await bench.text("edit", path="fifo", old_str="x", new_str="y")


async def test_mode_links_and_attributes_are_kept(bench: Bench) -> None:
    real = bench.write("real.sh", "echo one\n")
    real.chmod(0o751)
    os.symlink("real.sh", bench.path("link.sh"))
    with suppress(OSError):  # not every file system has attributes
        os.setxattr(real, "user.note", b"kept")
    attributes = os.listxattr(real)
    assert (
        await bench.call("edit", path="link.sh", old_str="one", new_str="two")
    ).kind == "success"
    assert bench.path("link.sh").is_symlink()
    assert real.read_text() == "echo two\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o751
    assert os.listxattr(real) == attributes
    if "user.note" in attributes:
        assert os.getxattr(real, "user.note") == b"kept"


async def test_hard_links_stay_linked(bench: Bench) -> None:
    first = bench.write("first", "a long first line\n")
    os.link(first, bench.path("second"))
    await bench.call("edit", path="first", old_str="long first", new_str="short")
    assert bench.path("second").read_text() == "a short line\n"
    assert first.stat().st_nlink == 2


async def test_nothing_is_left_beside_the_file(bench: Bench) -> None:
    bench.write("a.txt", "x\n")
    await bench.call("edit", path="a.txt", old_str="x", new_str="y")
    assert os.listdir(bench.root) == ["a.txt"]


async def test_a_change_by_somebody_else_is_mentioned(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\n")
    await bench.call("view", path="a.txt")
    assert (await bench.text("edit", path="a.txt", old_str="one", new_str="1")).endswith("changes.")
    bench.write("a.txt", "1\ntwo\nthree\n")
    result = await bench.call("edit", path="a.txt", old_str="two", new_str="2")
    assert "changed by something else" in result.text
    assert bench.path("a.txt").read_text() == "1\n2\nthree\n"
    assert (await bench.text("edit", path="a.txt", old_str="2", new_str="3")).endswith("changes.")


async def test_edits_of_one_file_side_by_side_all_arrive(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line{i}.\n" for i in range(20)))
    await asyncio.gather(
        *(
            bench.call("edit", path="a.txt", old_str=f"line{i}.", new_str=f"L{i}.")
            for i in range(20)
        )
    )
    assert bench.path("a.txt").read_text() == "".join(f"L{i}.\n" for i in range(20))


async def test_what_is_no_text_never_reaches_the_model_or_the_log(bench: Bench) -> None:
    bench.write("a.bin", b"one\n\xff\xfe\x00\x81 two\nthree\n" + bytes(range(256)))
    failed = await bench.call("edit", path="a.bin", old_str="\ufffd two\nthr33", new_str="x")
    done = await bench.call("edit", path="a.bin", old_str="two", new_str="2")
    assert (failed.kind, done.kind) == ("failure", "success")
    for text in (failed.text, str(done.detail)):
        assert text.encode()


async def test_access_shows_what_would_change(bench: Bench) -> None:
    path = bench.write("a.txt", "one\n")
    access = bench.access("edit", path="a.txt", old_str="one", new_str="two")
    assert (access.kind, access.target, access.mutates) == ("write", str(path), True)
    assert access.detail["fileName"] == str(path)
    assert access.detail["newFileContents"] == "two\n"
    assert "-one\n+two" in access.detail["diff"]
    assert bench.access("edit", path="nope", old_str="a", new_str="b").detail["diff"] == ""


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-32-le", "\ufeff"),
        ("utf-32-be", "\ufeff"),
        ("utf-16-le", ""),
        ("utf-16-be", ""),
    ],
)
async def test_wide_encodings_are_read_and_kept(bench: Bench, encoding: str, mark: str) -> None:
    before = f"{mark}one\r\ntwo\r\n".encode(encoding)
    bench.path("a.txt").write_bytes(before)
    assert await bench.text("view", path="a.txt") == "1. one\n2. two\n3."
    result = await bench.call("edit", path="a.txt", old_str="two", new_str="zwei\n語")
    assert result.kind == "success", result.text
    after = f"{mark}one\r\nzwei\r\n語\r\n".encode(encoding)
    assert bench.path("a.txt").read_bytes() == after


@pytest.mark.parametrize(
    "before",
    [
        "こんにちは\nhello\n".encode("iso-2022-jp"),
        "très vu\rhello\r".encode("mac-roman"),
        b"\x81\x8d hello\n",
    ],
)
async def test_a_file_in_no_known_encoding_takes_ascii_only(bench: Bench, before: bytes) -> None:
    bench.path("a.txt").write_bytes(before)
    result = await bench.call("edit", path="a.txt", old_str="hello", new_str="grüß")
    assert result.summary == "Character not in the file's encoding"
    assert bench.path("a.txt").read_bytes() == before
    await bench.call("edit", path="a.txt", old_str="hello", new_str="bye")
    assert bench.path("a.txt").read_bytes() == before.replace(b"hello", b"bye")


async def test_numbers_of_bytes_are_no_text(bench: Bench) -> None:
    bench.path("a.bin").write_bytes(bytes(byte for number in range(200) for byte in (number, 0)))
    assert (await bench.call("view", path="a.bin")).summary == "Binary file"


async def test_the_diff_of_a_very_long_line_shows_where_it_changes(bench: Bench) -> None:
    bench.write("a.min.js", "x" * 3_000_000 + "HERE" + "y" * 3_000_000)
    result = await bench.call("edit", path="a.min.js", old_str="HERE", new_str="THERE")
    assert result.detail is not None
    assert len(result.detail) < 50_000
    assert "xHEREy" in result.detail
    assert "xTHEREy" in result.detail


async def test_accents_joined_in_another_way_are_named(bench: Bench) -> None:
    bench.write("a.txt", "1. cafe\u0301\n2. tea\n")
    result = await bench.call("edit", path="a.txt", old_str="café", new_str="coffee")
    assert "NFC" in result.text
    result = await bench.call("edit", path="a.txt", old_str="cafe\u0301\ntea", new_str="x")
    assert "line numbers" not in result.text
