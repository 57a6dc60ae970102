"""Paths as the operating system sees them."""

import os
from pathlib import Path

import pytest

from trimtab.permissions.paths import (
    LONGEST,
    fold,
    is_attached_image,
    is_in_home,
    is_inside,
    is_own_file,
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
        (".claude/worktrees/fix/src/a.py", False),
        (".claude/worktrees/fix", False),
        (".claude/worktrees", True),
        (".claude/worktrees/fix/.claude/settings.json", True),
        (".claude/worktrees/fix/.git", True),
        (".claude/worktrees/fix/.claude/worktrees/two/a", False),
        (".claude/worktrees/../settings.json", True),
        (".Claude/Worktrees/fix/.husky/pre-commit", True),
        ("worktrees/.claude/a", True),
        (".vscode/worktrees/fix/a", True),
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


@pytest.mark.parametrize(
    ("path", "session", "own", "kept"),
    [
        ("/h/s/plan.md", "/h/s", True, False),
        ("/h/s/files/a", "/h/s", True, False),
        ("/h/s/events", "/h/s", False, True),
        ("/h/s", "/h/s", False, True),
        ("/h/a", "/h/s", False, True),
        ("/other/s/events", "/other/s", False, True),
        ("/other/s/plan.md", "/other/s", True, False),
        ("/other/a", "/other/s", False, False),
        ("/h/s/plan.md", "", False, True),
        ("/plan.md", "", False, False),
        ("plan.md", "", False, False),
    ],
)
def test_the_agents_folders_are_kept_but_for_the_sessions_own_files(
    path: str, session: str, own: bool, kept: bool
) -> None:
    assert is_own_file(path, session) is own
    assert is_in_home(path, ("/h",), session) is kept


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("/proc/1/maps", "/proc/1/maps is not a file but the kernel's (/proc)"),
        ("/sys/x", "/sys/x is not a file but the kernel's (/sys)"),
        ("/a/../proc/x", "/a/../proc/x is not a file but the kernel's (/proc)"),
        ("/processes/x", None),
        ("/a/proc/x", None),
        ("/dev/null", "/dev/null is a device"),
        ("/dev/nothing-there", "/dev/nothing-there is in the folder of devices"),
        ("/nothing-there", None),
        ("/", None),
        ("a\0b", None),
        ("/" + "y" * LONGEST, "/" + "y" * 99 + "… is too long for a path"),
        ("/" + "y" * (LONGEST - 1), None),
    ],
)
def test_a_refusal_says_what_is_there(path: str, refusal: str | None) -> None:
    assert refuse_special(path) == refusal


def test_a_path_longer_than_any_is_not_looked_for() -> None:
    assert resolve("/" + "x" * LONGEST + "\0") == "/" + "x" * LONGEST + "\ufffd"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems take names for equal")
def test_names_that_differ_in_case_are_two_files_here() -> None:
    assert fold("/a/B") == "/a/B"
    assert not is_inside("/A/b", ("/a",))


def test_the_lock_of_an_index_is_not_protected_and_what_is_beside_it_is() -> None:
    assert not is_protected("/srv/project/.git/index.lock")
    assert not is_protected("/srv/project/.git/worktrees/x/index.lock")
    assert is_protected("/srv/project/.git/config.lock")
    assert is_protected("/srv/project/.vscode/.git/index.lock")
    assert is_protected("/srv/project/.git/hooks/index.lock/x")
