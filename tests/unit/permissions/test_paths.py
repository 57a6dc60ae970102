"""Paths as the operating system sees them."""

import os
from pathlib import Path

import pytest

from trimtab.permissions.paths import (
    LONGEST,
    is_attached_image,
    is_inside,
    is_protected,
    refuse_special,
    resolve,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


def test_links_are_followed_and_odd_paths_lead_nowhere(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "real").mkdir()
    (top / "link").symlink_to("real")
    assert resolve(str(top / "link/new")) == str(top / "real/new")
    assert resolve(f"{top}/a\0b") == f"{top}/a\ufffdb"
    assert resolve(f"{top}/" + "x/../" * LONGEST) == str(top)
    assert resolve("/" + "y" * LONGEST) == "/" + "y" * LONGEST


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("ws", True),
        ("ws/a", True),
        ("ws/../other", False),
        ("ws/out/a", False),
        ("wsx", False),
        ("extra/a", True),
        (".", False),
    ],
)
def test_a_path_is_inside_by_where_it_leads(tmp_path: Path, path: str, inside: bool) -> None:
    for name in ("ws", "other", "extra"):
        (tmp_path / name).mkdir()
    (tmp_path / "ws/out").symlink_to("../other")
    roots = (str(tmp_path / "ws"), f"{tmp_path}/extra/")
    assert is_inside(str(tmp_path / path), roots) is inside


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        (".git/hooks/pre-commit", True),
        ("sub/.git/config", True),
        (".GIT/hooks/x", True),
        (".git\u200b/hooks/x", True),
        (".git./hooks/x", True),
        (".vscode/settings.json", True),
        ("src/app.py", False),
        ("git/hooks/x", False),
    ],
)
def test_names_that_make_something_run_are_protected(
    tmp_path: Path, path: str, protected: bool
) -> None:
    assert is_protected(str(tmp_path / path)) is protected


def test_a_link_to_a_protected_name_and_a_second_name_are_protected(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "innocent").symlink_to(".git/hooks")
    assert is_protected(str(tmp_path / "innocent/pre-commit"))
    (tmp_path / "a").write_text("x")
    assert not is_protected(str(tmp_path / "a"))
    os.link(tmp_path / "a", tmp_path / "b")
    assert is_protected(str(tmp_path / "a"))
    assert not is_protected(str(tmp_path)), "every folder has several names"


def test_what_is_no_ordinary_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "up").symlink_to("/proc")
    (tmp_path / "a").write_text("x")
    assert refuse_special(str(tmp_path / "a")) is None
    assert refuse_special(str(tmp_path)) is None
    assert refuse_special(str(tmp_path / "missing")) is None
    assert refuse_special(str(tmp_path / "pipe")) == f"{tmp_path}/pipe is a FIFO, which could block"
    assert refuse_special("/dev/null") == "/dev/null is a device"
    assert "folder of devices" in (refuse_special("/dev/new-name") or "")
    assert "the kernel's (/proc)" in (refuse_special("/proc/self/environ") or "")
    assert "the kernel's (/proc)" in (refuse_special(f"{tmp_path}/up/self/environ") or "")
    assert "the kernel's (/sys)" in (refuse_special("/x/../sys/kernel") or "")
    assert "too long" in (refuse_special("/" + "x" * LONGEST) or "")


def test_only_an_attached_file_that_is_an_image_is_one(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    image, text, link = (str(top / name) for name in ("a.png", "b.png", "c.png"))
    Path(image).write_bytes(PNG)
    Path(text).write_text("no image")
    Path(link).symlink_to("a.png")
    known = {image, text, str(top / "gone.png")}
    assert is_attached_image(image, known)
    assert is_attached_image(link, known)
    assert not is_attached_image(text, known)
    assert not is_attached_image(str(top / "gone.png"), known)
    assert not is_attached_image(image, {text})
    assert not is_attached_image(image, ())
