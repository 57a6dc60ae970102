"""The top folder of a repository, where git surely prints it."""

import subprocess
from pathlib import Path

import pytest

from gitkit import git, make_repository
from trimtab.permissions.shell.grammar.top_folder import MAX_SETTINGS, find_top
from trimtab.permissions.shell.verdict.analyse import analyse

CORE = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"


@pytest.fixture
def below(tmp_path: Path) -> Path:
    make_repository(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    return tmp_path / "a/b"


def print_top(folder: Path) -> str:
    command = ["git", "rev-parse", "--show-toplevel"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


@pytest.mark.needs("git")
def test_the_top_folder_is_known_in_a_repository(below: Path, tmp_path: Path) -> None:
    git(tmp_path, "remote", "add", "origin", "https://example.com/a.git")
    git(tmp_path, "config", "branch.main.merge", "refs/heads/main")
    git(tmp_path, "config", "user.name", "A Person")
    assert find_top(str(below)) == print_top(below) == str(tmp_path)
    script = 'cat "$(git rev-parse --show-toplevel)/x"'
    assert analyse(script, str(below)).reads == [f"{tmp_path}/x"]
    assert analyse(f"cd /; {script}", str(below)).strays
    assert analyse(f"GIT_DIR=/x; {script}", str(below)).strays


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config", CORE + "[core\n"),
        ("config", CORE + "\tworktree = /elsewhere\n"),
        ("config", CORE + "\tfilemode = perhaps\n"),
        ("config", "[core]\n\tbare = true\n"),
        ("config", "[core]\n\trepositoryformatversion = 99\n"),
        ("config", CORE + "\trepositoryformatversion = 1\n[extensions]\n\tnone = 1\n"),
        ("config", CORE + '[remote "x"]\n\turl = "a\n'),
        ("config", CORE + "\f\n"),
        ("config", CORE + "# " + "x" * MAX_SETTINGS),
        ("config", CORE + "[include]\n\tpath = ../other\n"),
        ("HEAD", "nothing\n"),
        ("commondir", "../elsewhere\n"),
    ],
)
def test_a_repository_that_git_may_not_take_for_one_has_no_known_top(
    below: Path, tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / ".git" / name).write_text(content)
    assert find_top(str(below)) == ""


@pytest.mark.needs("git")
def test_what_is_missing_or_in_between_leaves_the_top_unknown(below: Path, tmp_path: Path) -> None:
    assert find_top(str(tmp_path / ".git")) == find_top(str(tmp_path / ".git/refs")) == ""
    (below / "HEAD").write_text("ref: refs/heads/main\n")
    (below / "objects").mkdir()
    assert find_top(str(below)) == ""
    assert find_top(str(tmp_path / "a")) == str(tmp_path)
    (tmp_path / "a/.git").write_text("gitdir: /elsewhere\n")
    assert find_top(str(tmp_path / "a")) == ""
    (tmp_path / ".git/refs").rename(tmp_path / "refs")
    assert find_top(str(tmp_path)) == ""
