"""The `create` tool."""

import os
import stat

from toolkit import Bench


async def test_a_file_is_created_with_its_directories(bench: Bench) -> None:
    result = await bench.call("create", path="a/b/c.txt", file_text="één\ntwee\n")
    assert result.text == "Created file a/b/c.txt with 9 characters"
    assert bench.path("a/b/c.txt").read_text() == "één\ntwee\n"
    (change,) = result.changes
    assert (change.lines_added, change.lines_removed, change.created) == (2, 0, True)
    assert result.detail is not None
    assert "--- /dev/null\n" in result.detail
    assert result.detail.endswith("@@ -0,0 +1,2 @@\n+één\n+twee\n")
    assert os.listdir(bench.path("a/b")) == ["c.txt"]


async def test_the_umask_decides_on_the_mode(bench: Bench) -> None:
    old = os.umask(0o027)
    try:
        await bench.call("create", path="x", file_text="")
    finally:
        os.umask(old)
    assert stat.S_IMODE(bench.path("x").stat().st_mode) == 0o640


async def test_an_existing_file_is_not_overwritten(bench: Bench) -> None:
    bench.write("a.txt", "precious\n")
    result = await bench.call("create", path="a.txt", file_text="new\n")
    assert (result.kind, result.summary) == ("failure", "Path already exists")
    assert "edit" in result.text
    assert bench.path("a.txt").read_text() == "precious\n"
    same = await bench.call("create", path="a.txt", file_text="precious\n")
    assert same.kind == "success"


async def test_what_cannot_be_created_is_said(bench: Bench) -> None:
    bench.write("file", "x")
    assert (await bench.call("create", path=".", file_text="x")).summary == "Path is a directory"
    assert "device" in await bench.text("create", path="/dev/null", file_text="x")
    below = await bench.call("create", path="file/below", file_text="x")
    assert (below.kind, below.summary) == ("failure", "Not a directory")
    kernel = await bench.call("create", path="/proc/1/comm", file_text="x")
    assert "/proc" in kernel.text
    assert (await bench.call("create", path="nul\0byte", file_text="x")).kind == "failure"


async def test_access_shows_the_new_file(bench: Bench) -> None:
    access = bench.access("create", path="x.py", file_text="pass\n")
    assert (access.kind, access.target) == ("write", str(bench.path("x.py")))
    assert access.detail["newFileContents"] == "pass\n"
    assert "+pass" in access.detail["diff"]
    assert not bench.path("x.py").exists()
