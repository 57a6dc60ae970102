"""Git's own files: which are listed, where they are, and which belong to others."""

import os
from pathlib import Path

import pytest

from trimtab.undo.git_state import (
    ESSENTIAL,
    PASSING,
    Repositories,
    common_folder,
    git_folder,
    is_checked_out,
    is_git_state,
    is_repository,
    is_store,
    list_names,
    own_branch,
)


def put(path: Path, text: str = "x\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_git(folder: Path, branch: str = "main") -> Path:
    """Make a git directory with a branch, its log and an object."""
    put(folder / "HEAD", f"ref: refs/heads/{branch}\n")
    for name in ("index", "config", "packed-refs", "objects/info/alternates", "objects/ab/one"):
        put(folder / name)
    put(folder / "refs" / "heads" / branch)
    put(folder / "logs" / "refs" / "heads" / branch)
    return folder


def link_worktree(folder: Path, common: Path, checkout: Path, branch: str) -> Path:
    """Make the git directory of a linked worktree, whose files are in another folder."""
    put(folder / "HEAD", f"ref: refs/heads/{branch}\n")
    put(folder / "commondir", f"{os.path.relpath(common, folder)}\n")
    put(folder / "gitdir", f"{checkout}/.git\n")
    put(folder / "index")
    put(checkout / ".git", f"gitdir: {folder}\n")
    put(common / "refs" / "heads" / branch)
    return folder


def listed(found: Repositories, below: Path) -> set[str]:
    """The names of the listed files below a folder, without the folders."""
    paths = (Path(path) for path in found.rows)
    return {str(path.relative_to(below)) for path in paths if path.is_file()}


def test_the_state_of_a_repository_is_listed_and_its_objects_are_not(tmp_path: Path) -> None:
    git = make_git(tmp_path / ".git")
    for name in ("ORIG_HEAD", "lfs/objects/one", "trimtab-index-1", *PASSING[:-1]):
        put(git / name)
    (git / "worktrees").mkdir()
    found = Repositories(str(tmp_path), [str(git)], set())
    assert listed(found, git) == {
        "HEAD",
        "ORIG_HEAD",
        "index",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "refs/heads/main",
        "logs/refs/heads/main",
    }
    assert str(git) in found.rows
    assert str(git / "refs" / "heads") in found.rows
    assert str(git / "worktrees") not in found.rows
    assert found.objects == [str(git / "objects")]
    assert found.own == {str(git / "refs/heads/main"), str(git / "logs/refs/heads/main")}


@pytest.mark.parametrize("folder", ["p", "pp"])
def test_names_that_pass_count_deeper_inside(tmp_path: Path, folder: str) -> None:
    git = make_git(tmp_path / folder / ".git")
    put(git / "index.lock")
    for name in ("refs/heads/FETCH_HEAD", "refs/heads/trimtab-index-1", "refs/heads/worktrees/a"):
        put(git / name)
    found = listed(Repositories(str(tmp_path), [str(git)], set()), git)
    assert "index.lock" not in found
    assert found >= {
        "refs/heads/FETCH_HEAD",
        "refs/heads/trimtab-index-1",
        "refs/heads/worktrees/a",
    }


def test_branches_and_submodules_named_like_a_store_are_listed(tmp_path: Path) -> None:
    git = make_git(tmp_path / ".git")
    put(git / "refs" / "heads" / "objects" / "deep" / "objects" / "a")
    for name in ("sub", "objects"):
        make_git(git / "modules" / name)
    found = Repositories(str(tmp_path), [str(git)], set())
    names = listed(found, git)
    assert names >= {
        "refs/heads/objects/deep/objects/a",
        "modules/objects/HEAD",
        "modules/sub/HEAD",
        "modules/objects/refs/heads/main",
    }
    assert not [name for name in names if name.endswith("objects/ab/one")]
    stores = {str(git / "modules" / name / "objects") for name in ("sub", "objects")}
    assert set(found.objects) == {str(git / "objects"), *stores}
    assert len(found.objects) == 3


@pytest.mark.parametrize(
    ("path", "store"),
    [
        ("objects", True),
        ("lfs", True),
        ("refs/heads/objects", False),
        ("logs/refs/heads/objects", False),
        ("modules/objects", False),
        ("modules/sub/objects", True),
        ("modules/objects/objects", True),
        ("worktrees/modules/a/objects", True),
        ("worktrees/a/modules/objects", False),
    ],
)
def test_a_store_is_told_from_a_branch_and_a_submodule(path: str, store: bool) -> None:
    assert is_store(path) is store


@pytest.mark.parametrize(("link", "common"), [("a-link", "z-common"), ("z-link", "a-common")])
def test_a_linked_worktree_has_files_of_its_own_and_shares_refs(
    tmp_path: Path, link: str, common: str
) -> None:
    checkout = tmp_path / "m-checkout"
    main = make_git(tmp_path / common)
    folder = link_worktree(tmp_path / link, main, checkout, "mine")
    put(main / "refs" / "tags" / "v1")
    found = Repositories(str(checkout), [], set())
    assert listed(found, tmp_path) == {
        *(f"{link}/{name}" for name in ("HEAD", "index", "commondir", "gitdir")),
        *(f"{common}/{name}" for name in ("config", "packed-refs", "objects/info/alternates")),
        *(f"{common}/refs/{name}" for name in ("heads/main", "heads/mine", "tags/v1")),
    }
    assert found.objects == [str(main / "objects")]
    assert str(folder) in found.rows
    assert found.own == {f"{main}/refs/heads/mine", f"{main}/logs/refs/heads/mine"}
    assert not found.is_foreign(str(main / "refs" / "heads" / "mine"))
    for name in ("refs/heads/main", "logs/refs/heads/main"):
        assert found.is_foreign(str(main / name))
    assert not found.is_foreign(str(main / "refs" / "tags" / "v1"))


def test_a_linked_worktree_leaves_the_others_and_the_main_one_alone(tmp_path: Path) -> None:
    main = make_git(tmp_path / "main" / ".git")
    for name in ("a-theirs", "mine", "z-theirs"):
        link_worktree(main / "worktrees" / name, main, tmp_path / name, name)
    found = Repositories(str(tmp_path / "mine"), [], set())
    foreign = {
        name: found.is_foreign(f"{main}/worktrees/{name}/index")
        for name in list_names(f"{main}/worktrees")
    }
    assert foreign == {"a-theirs": True, "mine": False, "z-theirs": True}
    branches = {
        name: found.is_foreign(f"{main}/refs/heads/{name}")
        for name in list_names(f"{main}/refs/heads")
    }
    assert branches == {"a-theirs": True, "main": True, "mine": False, "z-theirs": True}


def test_what_belongs_to_other_checkouts_and_sessions_is_foreign(tmp_path: Path) -> None:
    root = tmp_path / "project"
    git = make_git(root / ".git")
    theirs = link_worktree(git / "worktrees" / "theirs", git, tmp_path / "theirs", "other")
    ours = link_worktree(git / "worktrees" / "ours", git, root / "inside", "inside")
    (git / "worktrees" / "gone").mkdir()
    for name in ("refs/heads/free", "refs/heads/trimtab/1", "refs/trimtab/1", "refs/trimtabs"):
        put(git / name)
    found = Repositories(str(root), [str(git)], set())
    foreign = {
        "refs/heads/main": False,
        "logs/refs/heads/main": False,
        "refs/heads/free": False,
        "refs/heads/inside": False,
        "refs/trimtabs": False,
        "refs/heads/other": True,
        "logs/refs/heads/other": True,
        "refs/heads/trimtab/1": True,
        "logs/refs/heads/trimtab/1": True,
        "refs/trimtab/1": True,
        "refs/trimtab": True,
        "worktrees/theirs/HEAD": True,
        "worktrees/ours/HEAD": False,
        "worktrees/gone": True,
        "index": False,
        "": False,
    }
    assert {name: found.is_foreign(str(git / name)) for name in foreign} == foreign
    assert not found.is_foreign("/elsewhere/a")
    names = listed(found, git)
    assert f"worktrees/{ours.name}/index" in names
    of_theirs = {name for name in names if name.startswith(f"worktrees/{theirs.name}/")}
    assert of_theirs == {f"worktrees/theirs/{name}" for name in ("HEAD", "commondir", "gitdir")}


def test_what_another_worktree_cannot_do_without_is_listed(tmp_path: Path) -> None:
    git = make_git(tmp_path / "project" / ".git")
    folder = link_worktree(git / "worktrees" / "theirs", git, tmp_path / "theirs", "other")
    for name in (*ESSENTIAL, "ORIG_HEAD"):
        put(folder / name, (folder / name).read_text() if (folder / name).exists() else "x")
    names = listed(Repositories(str(tmp_path / "project"), [str(git)], set()), folder.parent.parent)
    of_theirs = {name.rpartition("/")[2] for name in names if name.startswith("worktrees/theirs/")}
    assert of_theirs == ESSENTIAL


def test_without_a_branch_nothing_but_the_names_of_sessions_is_foreign(tmp_path: Path) -> None:
    git = make_git(tmp_path / ".git")
    put(git / "HEAD", "0" * 40)
    folder = link_worktree(git / "worktrees" / "theirs", git, tmp_path.parent / "theirs", "x")
    put(folder / "HEAD", "1" * 40)
    found = Repositories(str(tmp_path), [str(git)], set())
    assert not found.is_foreign(str(git / "refs" / "heads" / "main"))
    assert not found.is_foreign(str(git / "config"))


def test_of_a_large_git_folder_only_the_main_files_are_listed(tmp_path: Path) -> None:
    git = make_git(tmp_path / ".git")
    put(git / "description")
    put(git / "refs" / "heads" / "other")
    large = {str(git)}
    found = listed(Repositories(str(tmp_path), [str(git)], large), git)
    main = {"HEAD", "index", "config", "packed-refs", "objects/info/alternates", "refs/heads/main"}
    assert found == main


def test_a_git_folder_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    found = Repositories(str(tmp_path), [str(tmp_path / "gone")], set())
    assert (found.rows, found.objects) == ({}, [])


@pytest.mark.parametrize("target", ["x-git", "../x-git", "{top}/x-git"])
def test_a_git_file_names_the_folder(tmp_path: Path, target: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for folder in (root / "x-git", tmp_path / "x-git"):
        folder.mkdir()
    put(root / ".git", f"gitdir: {target.format(top=tmp_path)}\n")
    expected = root / "x-git" if target == "x-git" else tmp_path / "x-git"
    assert git_folder(str(root)) == str(expected)


def test_a_git_folder_may_be_a_link_and_anything_else_is_none(tmp_path: Path) -> None:
    assert git_folder(str(tmp_path)) is None
    (tmp_path / "real").mkdir()
    (tmp_path / ".git").symlink_to("real")
    assert git_folder(str(tmp_path)) == str(tmp_path / "real")
    (tmp_path / ".git").unlink()
    put(tmp_path / ".git", "something else\n")
    assert git_folder(str(tmp_path)) is None


def test_a_git_file_that_leads_to_no_repository_is_ignored(tmp_path: Path) -> None:
    elsewhere = tmp_path / "a-letters"
    put(elsewhere / "letter")
    put(tmp_path / "project" / ".git", f"gitdir: {elsewhere}\n")
    assert Repositories(str(tmp_path / "project"), [], set()).rows == {}


@pytest.mark.parametrize(
    ("names", "is_one"),
    [
        (("HEAD", "objects/x"), True),
        (("HEAD", "commondir"), True),
        (("HEAD",), False),
        (("objects/x",), False),
        (("commondir",), False),
        (("HEAD/x", "objects/x"), False),
        (("HEAD", "objects"), False),
    ],
)
def test_a_repository_has_a_head_and_objects_somewhere(
    tmp_path: Path, names: tuple[str, ...], is_one: bool
) -> None:
    for name in names:
        put(tmp_path / name)
    assert is_repository(str(tmp_path)) is is_one


def test_refs_are_in_the_common_folder(tmp_path: Path) -> None:
    assert common_folder(str(tmp_path)) == str(tmp_path)
    put(tmp_path / "link" / "commondir", "..\n")
    assert common_folder(str(tmp_path / "link")) == str(tmp_path)
    put(tmp_path / "link" / "commondir", "/elsewhere\n")
    assert common_folder(str(tmp_path / "link")) == "/elsewhere"


def test_a_worktree_is_checked_out_in_a_folder_by_whole_names(tmp_path: Path) -> None:
    assert not is_checked_out(str(tmp_path), "/work")
    put(tmp_path / "gitdir", "/work/tree/.git\n")
    assert is_checked_out(str(tmp_path), "/work")
    assert is_checked_out(str(tmp_path), "/work/tree")
    assert not is_checked_out(str(tmp_path), "/wor")
    assert not is_checked_out(str(tmp_path), "/work/tree/.git/x")


def test_without_files_there_is_no_branch_and_no_name(tmp_path: Path) -> None:
    assert own_branch(str(tmp_path)) == ""
    assert list_names(str(tmp_path / "gone")) == []
    put(tmp_path / "a")
    assert list_names(str(tmp_path)) == ["a"]


def test_git_state_is_what_is_inside_a_git_folder() -> None:
    assert is_git_state("/a/.git/HEAD")
    assert is_git_state("/a/.git")
    assert not is_git_state("/a/.gitignore")
    assert not is_git_state("/a/git/HEAD")
