"""Which folder is looked at before a command."""

from pathlib import Path

from trimtab.undo.tracking import find_top, find_tops, unsuitable_roots


def test_a_repository_around_a_folder_is_taken_as_a_whole(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "src" / "deep"
    inner.mkdir(parents=True)
    assert find_top(str(inner), ()) == str(inner)
    (tmp_path / "repo" / ".git").mkdir()
    assert find_top(str(inner), ()) == str(tmp_path / "repo")


def test_a_repository_that_is_a_home_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project = home / "project"
    project.mkdir(parents=True)
    (home / ".git").mkdir()
    assert str(home) in unsuitable_roots(str(home))
    assert find_tops([str(project)], str(home)) == [str(project)]


def test_a_worktree_whose_git_is_a_file_is_a_repository(tmp_path: Path) -> None:
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert find_top(str(tmp_path / "tree" / "a"), ()) == str(tmp_path / "tree")
