"""The `apply_patch` tool: the format, where hunks belong, all or nothing, byte for byte."""

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import Bench
from trimtab.contracts.tool import ToolResult
from trimtab.tools.apply_patch.patch import PatchError, parse_patch
from trimtab.tools.apply_patch.place import plan_update


async def patch(bench: Bench, body: str) -> ToolResult:
    tool = bench.tools["apply_patch"]
    args = {"input": f"*** Begin Patch\n{body}*** End Patch\n"}
    tool.access(args, bench)
    return await tool.run(args, bench)


async def test_files_are_added_changed_moved_and_deleted_by_one_patch(bench: Bench) -> None:
    bench.write("a.py", "one\ntwo\nthree\n").chmod(0o755)
    bench.write("gone.py", "x\n")
    result = await patch(
        bench,
        "*** Add File: new/b.py\n+hello\n+\n*** Update File: a.py\n*** Move to: c/d.py\n"
        "@@\n one\n-two\n+TWO\n three\n*** Delete File: gone.py\n",
    )
    assert result.text == "Success. Updated the following files:\nA new/b.py\nM c/d.py\nD gone.py"
    assert bench.path("new/b.py").read_text() == "hello\n\n"
    assert bench.path("c/d.py").read_text() == "one\nTWO\nthree\n"
    assert stat.S_IMODE(bench.path("c/d.py").stat().st_mode) == 0o755
    assert not bench.path("a.py").exists()
    assert not bench.path("gone.py").exists()
    assert [(change.lines_added, change.lines_removed) for change in result.changes] == [
        *((2, 0), (1, 1), (0, 1)),
    ]


@pytest.mark.parametrize(
    ("text", "encoding", "new"),
    [("é = 1\nx\n", "cp1252", "日"), ("ソース\nかな\nx\n", "cp932", "é")],
)
async def test_a_character_the_encoding_lacks_is_refused(
    bench: Bench, text: str, encoding: str, new: str
) -> None:
    data = text.encode(encoding)
    bench.write("a.txt", data)
    result = await patch(bench, f"*** Update File: a.txt\n@@\n-x\n+{new}\n")
    assert result.kind == "failure"
    assert "which has no character" in result.text
    assert bench.path("a.txt").read_bytes() == data


@pytest.mark.parametrize(
    "last",
    [
        "*** Update File: missing.py\n@@\n-x\n+y\n",
        "*** Update File: b.py\n@@\n-not there\n+y\n",
        "*** Add File: b.py\n+x\n",
        "*** Delete File: missing.py\n",
        "*** Update File: a.py\n@@\n-one\n+twice\n",
        "*** Update File: b.py\n*** Move to: a.py\n@@\n-b\n+c\n",
        "*** Add File: a.py/below\n+x\n",
    ],
)
async def test_when_one_part_fails_nothing_is_changed(bench: Bench, last: str) -> None:
    bench.write("a.py", "one\n")
    bench.write("b.py", "b\n")
    result = await patch(
        bench, f"*** Update File: a.py\n@@\n-one\n+ONE\n*** Add File: n.py\n+n\n{last}"
    )
    assert result.kind == "failure"
    assert bench.path("a.py").read_text() == "one\n"
    assert bench.path("b.py").read_text() == "b\n"
    assert not bench.path("n.py").exists()


async def test_a_hunk_that_fails_names_the_nearest_lines(bench: Bench) -> None:
    bench.write("a.py", "def f():\n    return 1\n")
    result = await patch(
        bench, "*** Update File: a.py\n@@\n def f():\n-    return 2\n+    return 3\n"
    )
    assert "hunk 1 does not match" in result.text
    assert "Nearest text is at lines 1-2 (- patch, + file)" in result.text
    assert "+    return 1" in result.text


async def test_headers_say_which_of_several_places_is_meant(bench: Bench) -> None:
    text = "class A:\n    def f():\n        x = 1\nclass B:\n    def f():\n        x = 1\n"
    bench.write("a.py", text)
    await patch(
        bench,
        "*** Update File: a.py\n@@ class B:\n@@     def f():\n-        x = 1\n+        x = 2\n",
    )
    assert bench.path("a.py").read_text() == text[:-2] + "2\n"


async def test_lines_that_stay_keep_their_own_bytes(bench: Bench) -> None:
    bench.write("a.txt", b"\xef\xbb\xbfone  \r\ntwo\t\r\nthree\rfour")
    await patch(bench, "*** Update File: a.txt\n@@\n one\n-two\n+2\n+zwei\n three\n")
    assert bench.path("a.txt").read_bytes() == b"\xef\xbb\xbfone  \r\n2\r\nzwei\r\nthree\rfour"


@pytest.mark.parametrize(
    ("before", "hunk", "after"),
    [
        ("a\nb", "-b\n+c\n", "a\nc"),
        ("a\nb", " b\n+c\n", "a\nb\nc"),
        ("a\nb\n", " b\n+c\n*** End of File\n", "a\nb\nc\n"),
        ("", "+a\n", "a\n"),
        ("a\nb\n", "-a\n-b\n", ""),
        ("b\na\nb\n", " b\n+c\n*** End of File\n", "b\na\nb\nc\n"),
        ("a\n", "+0\n a\n", "0\na\n"),
        ("a\nb\n", " a\n-b\n+c\n\n", "a\nc\n"),
    ],
)
async def test_the_ends_of_files(bench: Bench, before: str, hunk: str, after: str) -> None:
    bench.write("a", before)
    result = await patch(bench, f"*** Update File: a\n@@\n{hunk}")
    assert result.kind == "success", result.text
    assert bench.path("a").read_text() == after


@pytest.mark.parametrize(
    "text",
    [
        "", "*** Begin Patch\n*** End Patch", "*** Update File: a\n@@\n-a\n",
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n same\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n*** Odd\n*** End Patch",
        "*** Begin Patch\nhello\n*** End Patch",
    ],
)  # fmt: skip
async def test_a_malformed_patch_is_refused_with_a_reason(bench: Bench, text: str) -> None:
    with pytest.raises(PatchError):
        parse_patch(text)
    result = await bench.tools["apply_patch"].run({"input": text}, bench)
    assert result.kind == "failure"


async def test_every_path_is_asked_about(bench: Bench) -> None:
    bench.write("a", "a\n")
    bench.write("d", "d\n")
    text = "*** Update File: a\n*** Move to: /etc/b\n@@\n-a\n+b\n*** Delete File: d\n*** Add File: n\n+n\n"
    args = {"input": f"*** Begin Patch\n{text}*** End Patch"}
    found = bench.tools["apply_patch"].access(args, bench)
    assert [access.target for access in found] == [
        *(str(bench.path("a")), "/etc/b", str(bench.path("d")), str(bench.path("n"))),
    ]
    assert "+b" in found[0].detail["diff"]
    assert found[2].detail["deletes"] is True


async def test_a_link_is_not_deleted_with_what_it_leads_to(bench: Bench) -> None:
    target = bench.write("a", "a\n")
    bench.path("link").symlink_to(target)
    result = await patch(bench, "*** Add File: n\n+n\n*** Delete File: link\n")
    assert result.kind == "failure"
    assert target.read_text() == "a\n"
    assert not bench.path("n").exists()


LINES = st.lists(st.text("ab é", max_size=3), min_size=1, max_size=12)


@given(
    lines=LINES,
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=12, max_size=12),
    final=st.booleans(),
    data=st.data(),
)
def test_only_the_lines_of_the_hunk_change(
    lines: list[str], ends: list[str], final: bool, data: st.DataObject
) -> None:
    whole = ["unique", *lines]
    ends = [*ends[: len(whole) - 1], ends[-1] if final else ""]
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = f"target {at}"
    content = "".join(line + end for line, end in zip(whole, [*ends, *["\n"] * 13], strict=False))
    if "\r" in ends[:-1] and any(
        a == "\r" and b == "" for a, b in zip(ends, whole[1:], strict=False)
    ):
        return  # a lone CR before an empty line ended by LF reads as one newline
    raw = content.encode()
    found = parse_patch(
        f"*** Begin Patch\n*** Update File: f\n@@\n-target {at}\n+new\n*** End Patch"
    )
    made = plan_update(raw, found[0].hunks)
    assert isinstance(made, tuple)
    assert made[0] == content.replace(f"target {at}", "new").encode()


async def test_hunks_in_another_order_than_the_file_are_told_so(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\nthree\n")
    result = await patch(bench, "*** Update File: a.txt\n@@\n-three\n+3\n@@\n-one\n+1\n")
    assert "hunk 2" in result.text
    assert "in the order of the file" in result.text
    assert bench.path("a.txt").read_text() == "one\ntwo\nthree\n"


async def test_line_ranges_of_a_usual_diff_are_no_headers(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\nthree\n")
    body = "*** Update File: a.txt\n@@ -1,2 +1,2 @@ def f():\n one\n-two\n+2\n"
    assert (await patch(bench, body)).kind == "success"
    assert bench.path("a.txt").read_text() == "one\n2\nthree\n"
    insertion = "*** Update File: a.txt\n@@ -1,0 +2,1 @@\n+new\n"
    assert (await patch(bench, insertion)).kind == "failure"
