"""Files that git has recorded, which it prints whatever a fence hides."""

from pathlib import Path

import pytest

from gitkit import git, make_repository
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.tracked_files import find_recorded, is_tracked, prints_recorded


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "a").mkdir(parents=True)
    (folder / "a/known.txt").write_text("x\n")
    make_repository(folder)
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "first")
    (folder / "new.txt").write_text("y\n")
    return folder


def test_a_file_of_the_index_is_tracked_and_another_is_not(repository: Path) -> None:
    assert is_tracked(str(repository / "a/known.txt"))
    assert not is_tracked(str(repository / "new.txt"))
    assert not is_tracked(str(repository.parent / "elsewhere.txt"))


def test_a_shortened_index_counts_as_having_every_file(repository: Path) -> None:
    git(repository, "update-index", "--index-version", "4")
    assert is_tracked(str(repository / "new.txt"))


def test_a_worktree_has_an_index_of_its_own(repository: Path) -> None:
    other = repository.parent / "other"
    git(repository, "worktree", "add", str(other))
    assert is_tracked(str(other / "a/known.txt"))
    assert not is_tracked(str(other / "new.txt"))


def test_a_repository_without_an_index_tracks_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert not is_tracked(str(tmp_path / "a.txt"))


def test_an_index_that_cannot_be_read_may_have_the_file(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").mkdir()
    assert is_tracked(str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        ("git show HEAD:a", True),
        ("git log -p", True),
        ("ls && git diff", True),
        ("git status", False),
        ("git add a", False),
        ("git-show HEAD:a", True),
        ("/usr/lib/git-core/git-show HEAD:a", True),
        ("git add -p", True),
        ("git add --patch", True),
        ("git status -v", True),
        ("git status -s", False),
        ("git rebase --show-current-patch", True),
        ("git commit -v", True),
        ("git clone . /tmp/x", True),
        ("git worktree add ../x", True),
        ("git merge-file -p a b c", True),
        ("git read-tree --prefix=o/ -u HEAD", True),
        ("git update-index --cacheinfo 100644,$x,y", True),
        ("git --work-tree=o checkout .", True),
        ("GIT_WORK_TREE=o git checkout .", True),
        ("git -c core.worktree=o reset --hard", True),
        ("git merge -s subtree HEAD", True),
        ("git submodule add . o", True),
        ("git submodule update --init", False),
        ("git for-each-ref --format='%(raw)'", True),
        ("git for-each-ref --format='%(refname)'", False),
        ("git fsck --lost-found", True),
        ("git init o", True),
        ("git pull origin main", False),
        ("git checkout -- a && git merge x", False),
        ("gitk", True),
        ("tig", True),
        ("git", False),
        ("gitleaks detect", False),
        ("show diff", False),
    ],
)
def test_some_commands_of_git_print_what_is_in_files(command: str, prints: bool) -> None:
    assert prints_recorded(analyse(command, "/srv", "/home/me"), "/srv") is prints


def test_files_are_named_as_they_are_in_a_commit(repository: Path) -> None:
    below = str(repository / "a")
    named = list(find_recorded(analyse("git show HEAD:k.txt :x other", below, ""), below))
    assert named == [
        f"{below}/k.txt", f"{repository}/k.txt", f"{below}/x", f"{repository}/x",
    ]  # fmt: skip
    assert list(find_recorded(analyse("cat HEAD:k.txt", below, ""), below)) == []
    assert list(find_recorded(analyse("git show HEAD:", below, ""), below)) == []
    outside = str(repository.parent)
    assert list(find_recorded(analyse("git show HEAD:k", outside, ""), outside)) == [f"{outside}/k"]


def test_another_repository_may_write_what_is_recorded_to_other_places(repository: Path) -> None:
    (repository / "o/.git").mkdir(parents=True)
    cwd = str(repository)
    for command in ("git -C o pull .. HEAD", "cd o && git checkout x", "git fetch .. main"):
        assert prints_recorded(analyse(command, cwd, ""), cwd)
    for command in ("git -C a checkout .", "cd a && git add known.txt", "git push origin main"):
        assert not prints_recorded(analyse(command, cwd, ""), cwd)
