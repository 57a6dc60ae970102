"""Files, directories and images that a prompt names."""

import base64
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from customizekit import write
from trimtab.attachments.attach import attach, find_mentions
from trimtab.attachments.images import LONGEST_SIDE, find_type, fit_image
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.prompts.transform import render_prompt
from trimtab.tools.view.image import MAX_IMAGE


def picture(kind: str, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> bytes:
    written = io.BytesIO()
    Image.new(mode, size, 100).save(written, kind)
    return written.getvalue()


@pytest.mark.parametrize(
    ("said", "name", "lines"),
    [
        ("look at @a.py", "a.py", None),
        ("look at @a.py, please", "a.py", None),
        ("is it (@src/b.py)?", "src/b.py", None),
        ("@a.py:10-20 is odd", "a.py", (10, 20)),
        ("why @a.py:7?", "a.py", (7, 7)),
        ("@src/b.py:7:12: error: no such name", "src/b.py", (7, 7)),
        ('see @"my file.txt".', "my file.txt", None),
        ('see @"my file.txt":3-4', "my file.txt", (3, 4)),
        ("see @my\\ file.txt", "my file.txt", None),
        ("what is in @src/", "src", None),
        ("what is in @./src", "src", None),
    ],
)
def test_a_path_in_the_words_is_attached(
    tmp_path: Path, said: str, name: str, lines: tuple[int, int] | None
) -> None:
    for file in ("a.py", "src/b.py", "my file.txt"):
        write(tmp_path / file, "x\n")
    assert list(find_mentions(said, str(tmp_path))) == [(str(tmp_path / name), lines)]


@pytest.mark.parametrize("said", ["me@a.py", "@nobody", "@", "@@a.py", "a/@a.py", "@a.py.old"])
def test_what_is_no_path_stays_words(tmp_path: Path, said: str) -> None:
    write(tmp_path / "a.py", "x\n")
    assert list(find_mentions(said, str(tmp_path))) == []


@given(text=st.text())
def test_no_words_can_break_it(text: str) -> None:
    assert attach(text, (), "/nonexistent-folder").text == text


def test_the_same_file_is_attached_once_and_lines_are_shown(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "1\n2\n3\n")
    (tmp_path / "d").mkdir()
    prompt = attach("@a.py @./a.py @a.py:2-3", ("d", "a.py"), str(tmp_path))
    kinds = [(item["type"], item.get("lineRange")) for item in prompt.attachments]
    assert kinds == [("directory", None), ("file", None), ("file", {"start": 2, "end": 3})]
    assert render_prompt(prompt.text, prompt.attachments).endswith(
        f"<tagged_files>\n* {tmp_path}/d (0 items)\n* {tmp_path}/a.py (4 lines)\n"
        f"* {tmp_path}/a.py (lines 2-3 of 4 lines)\n</tagged_files>"
    )


def test_a_flag_must_name_something_and_a_pipe_is_never_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "pipe"):
        with pytest.raises(UsageError, match="no such file or directory"):
            attach("x", (name,), str(tmp_path))
    assert attach("@pipe", (), str(tmp_path)).attachments == ()
    client = [{"type": "file", "path": str(tmp_path / "pipe")}]
    assert f"* {tmp_path}/pipe\n" in render_prompt("x", client)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_images_are_known_by_their_content(tmp_path: Path, kind: str) -> None:
    data = picture(kind)
    assert find_type(data) == f"image/{kind.lower()}"
    write(tmp_path / "no-image.txt", data)
    (attachment,) = attach("what is @no-image.txt", (), str(tmp_path)).attachments
    assert attachment["type"] == "blob"
    assert attachment["mimeType"] == ("image/jpeg" if kind == "BMP" else f"image/{kind.lower()}")
    with Image.open(io.BytesIO(base64.b64decode(attachment["data"]))) as image:
        assert image.size == (8, 8)


def test_a_text_that_begins_like_a_bitmap_is_text(tmp_path: Path) -> None:
    write(tmp_path / "cars.txt", "BMW makes cars")
    (attachment,) = attach("@cars.txt", (), str(tmp_path)).attachments
    assert attachment["type"] == "file"


@pytest.mark.proves("PKG-04")
@pytest.mark.parametrize(("mode", "kind"), [("RGB", "image/jpeg"), ("RGBA", "image/png")])
def test_an_image_that_is_too_large_is_made_smaller(mode: str, kind: str) -> None:
    noise = Image.frombytes(mode, (1500, 1500), os.urandom(1500 * 1500 * len(mode)))
    written = io.BytesIO()
    noise.save(written, "PNG")
    data = written.getvalue()
    assert len(data) > MAX_IMAGE
    fitted, became = fit_image(data, "noise.png")
    assert became == kind
    assert len(fitted) <= MAX_IMAGE
    with Image.open(io.BytesIO(fitted)) as image:
        assert max(image.size) <= LONGEST_SIDE


def test_a_damaged_image_is_refused_with_a_sentence() -> None:
    damaged = picture("PNG")[:40] + b"\0" * (MAX_IMAGE + 1)
    with pytest.raises(UsageError, match="cannot be read as an image"):
        fit_image(damaged, "x.png")


def fake(folder: Path, name: str, script: str) -> None:
    path = write(folder / name, f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.proves("PKG-04")
def test_the_clipboard_gives_an_image_before_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = picture("PNG")
    write(tmp_path / "image", data)
    types = f'case "$*" in *TARGETS) echo TARGETS image/png;; *) cat {tmp_path}/image;; esac'
    fake(tmp_path / "bin", "xclip", types)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (attachment,) = attach("x", ("clipboard",), str(tmp_path)).attachments
    assert base64.b64decode(attachment["data"]) == data


def test_text_of_the_clipboard_comes_before_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path / "bin", "wl-paste", "exit 1")
    fake(tmp_path / "bin", "xsel", "printf 'two\\nlines'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    prompt = attach("explain", ("clipboard",), str(tmp_path))
    shown = render_prompt(prompt.text, prompt.attachments)
    assert shown.startswith(
        "<ide_selection>\nFile: clipboard (lines 1-2)\n```\ntwo\nlines\n```\n</ide_selection>\n\n"
    )
    assert shown.endswith("\n\nexplain")


def test_no_clipboard_program_and_an_empty_clipboard_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ConfigurationError, match="none of wl-paste, xclip, xsel, pbpaste"):
        attach("x", ("clipboard",), str(tmp_path))
    fake(tmp_path / "bin", "pbpaste", "true")
    with pytest.raises(UsageError, match="clipboard is empty"):
        attach("x", ("clipboard",), str(tmp_path))
