"""The `view` tool."""

import base64
import os

import pytest

from toolkit import Bench

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_lines_are_numbered_and_a_final_newline_shows_as_a_bare_number(bench: Bench) -> None:
    bench.write("a.txt", "Hi Universe\n\nGoodbye World\n")
    assert await bench.text("view", path="a.txt") == "1. Hi Universe\n2. \n3. Goodbye World\n4."
    bench.write("b.txt", "no newline")
    assert await bench.text("view", path=str(bench.path("b.txt"))) == "1. no newline"
    bench.write("empty", "")
    assert await bench.text("view", path="empty") == "1."


async def test_a_range_is_numbered_from_its_start(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line{i}\n" for i in range(1, 7)))
    assert (
        await bench.text("view", path="a.txt", view_range=[2, 4]) == "2. line2\n3. line3\n4. line4"
    )
    assert await bench.text("view", path="a.txt", view_range=[6, -1]) == "6. line6\n7."
    assert await bench.text("view", path="a.txt", view_range=[6, 99]) == "6. line6\n7."


@pytest.mark.parametrize("view_range", [[0, 2], [3, 2], [9, 12], [-1, -1]])
async def test_an_impossible_range_is_refused(bench: Bench, view_range: list[int]) -> None:
    bench.write("a.txt", "a\nb\nc\n")
    result = await bench.call("view", path="a.txt", view_range=view_range)
    assert (result.kind, result.summary) == ("failure", "Invalid view_range")
    assert "4 lines" in result.text


async def test_a_directory_shows_its_names(bench: Bench) -> None:
    bench.write("src/b.py", "")
    bench.write("a.txt", "")
    bench.write(".hidden", "")
    assert await bench.text("view", path=".") == ".hidden\na.txt\nsrc"
    bench.path("none").mkdir()
    assert "empty" in await bench.text("view", path="none")


async def test_a_large_directory_is_cut(bench: Bench) -> None:
    for i in range(1005):
        bench.write(f"many/{i:04d}", "")
    text = await bench.text("view", path="many")
    assert text.count("\n") == 1000
    assert "5 more" in text


async def test_a_missing_path_is_said_in_known_words(bench: Bench) -> None:
    result = await bench.call("view", path="/nope/x")
    assert result.text == "Path /nope/x does not exist. Please provide a valid path."
    assert (result.kind, result.summary) == ("failure", "Path does not exist")


async def test_an_image_comes_as_an_image(bench: Bench) -> None:
    bench.write("dot.bin", PNG)
    result = await bench.call("view", path="dot.bin")
    assert result.text == "Viewed image file successfully."
    (image,) = result.images
    assert (image.mime_type, image.name) == ("image/png", "dot.bin")
    assert base64.b64decode(image.data) == PNG


async def test_binary_files_are_refused_with_advice(bench: Bench) -> None:
    bench.write("a.out", b"\x7fELF\0\0\0" * 100)
    result = await bench.call("view", path="a.out")
    assert (result.kind, result.summary) == ("failure", "Binary file")
    assert "bash" in result.text


async def test_large_files_need_a_range_or_force(bench: Bench) -> None:
    bench.write("big.txt", "0123456789\n" * 4000)
    text = await bench.text("view", path="big.txt")
    assert text.startswith(
        "File too large to read at once (43.0 KB). Consider using the grep tool to search within "
        "the file, or view with view_range to read specific sections"
    )
    assert "forceReadLargeFiles" in text
    whole = await bench.text("view", path="big.txt", forceReadLargeFiles=True)
    assert whole.startswith("1. 0123456789\n")
    assert whole.endswith("\n4001.")
    part = await bench.text("view", path="big.txt", view_range=[2, -1])
    assert len(part) < 21_000
    last = int(part.rsplit("\n", 2)[1].split(".")[0])
    assert part.endswith(f"<cut here: continue with view_range [{last + 1}, …]>")


async def test_one_endless_line_is_cut(bench: Bench) -> None:
    bench.write("min.js", "x" * 100_000)
    text = await bench.text("view", path="min.js", view_range=[1, 1])
    assert len(text) < 21_000
    assert "100,000 characters" in text


async def test_a_few_lines_of_a_huge_file_are_read_as_a_stream(bench: Bench) -> None:
    path = bench.write("huge.log", b"")
    with path.open("wb") as file:
        for block in range(20):
            file.write(
                b"".join(b"%07d %s\n" % (block * 20_000 + i, b"." * 42) for i in range(20_000))
            )
    text = await bench.text("view", path="huge.log", view_range=[399_999, -1])
    assert text.startswith("399999. 0399998 ...")
    assert text.count("\n") == 1
    assert (await bench.text("view", path="huge.log")).startswith("File too large")
    beyond = await bench.call("view", path="huge.log", view_range=[999_999, -1])
    assert beyond.summary == "Invalid view_range"


async def test_what_could_block_is_refused(bench: Bench) -> None:
    os.mkfifo(bench.path("fifo"))
    assert "FIFO" in await bench.text("view", path="fifo")
    assert "device" in await bench.text("view", path="/dev/zero")
    assert "/proc" in await bench.text("view", path="/proc/self/environ")
    os.symlink("/dev/zero", bench.path("link"))
    assert "device" in await bench.text("view", path="link")
    os.symlink("loop", bench.path("loop"))
    assert (await bench.call("view", path="loop")).kind == "failure"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252", "cp932"])
async def test_other_encodings_are_shown_as_text(bench: Bench, encoding: str) -> None:
    text = "これはテストです" if encoding == "cp932" else "naïve café"
    bench.write("a.txt", f"x\r\n{text}\r\n".encode(encoding))
    assert await bench.text("view", path="a.txt") == f"1. x\n2. {text}\n3."


async def test_access_is_reading(bench: Bench) -> None:
    access = bench.access("view", path="a.txt")
    assert (access.kind, access.target, access.mutates) == ("read", str(bench.path("a.txt")), False)
