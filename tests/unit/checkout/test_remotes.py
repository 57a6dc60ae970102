"""The repository that a remote names, read from git's own settings."""

from pathlib import Path

import pytest

from trimtab.checkout.checkout import find_checkout, plain_checkout
from trimtab.checkout.remotes import HostedRepository, find_hosted, identify


@pytest.mark.parametrize(
    ("address", "hosted"),
    [
        ("git@github.com:acme/widgets.git", ("acme/widgets", "github", "github.com")),
        ("https://github.com/acme/widgets", ("acme/widgets", "github", "github.com")),
        ("https://user:key@GitHub.com/acme/widgets/", ("acme/widgets", "github", "github.com")),
        ("ssh://git@ssh.github.com:443/a/b.git", ("a/b", "github", "ssh.github.com")),
        ("https://acme.ghe.com/a/b", ("a/b", "github", "acme.ghe.com")),
        ("git@ssh.dev.azure.com:v3/org/proj/repo", ("org/proj/repo", "ado", "ssh.dev.azure.com")),
        ("https://org@dev.azure.com/org/p/_git/r", ("org/p/r", "ado", "dev.azure.com")),
        ("https://org.visualstudio.com/p/_git/r", ("org/p/r", "ado", "org.visualstudio.com")),
        ("https://gitlab.com/a/b/c.git", None),
        ("https://github.com/acme", None),
        ("https://notgithub.com/a/b", None),
        ("https://dev.azure.com/org/p/other/r", None),
        ("/srv/widgets.git", None),
        ("", None),
    ],
)
def test_known_services_are_recognised(address: str, hosted: tuple[str, str, str] | None) -> None:
    assert identify(address) == (HostedRepository(*hosted) if hosted else None)


def write_config(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config").write_text(text)
    return str(folder)


def test_origin_counts_or_the_only_remote(tmp_path: Path) -> None:
    first = '[remote "fork"]\n\turl = git@github.com:me/widgets.git\n'
    origin = '[remote "origin"]\n\tURL = "git@github.com:acme/widgets.git"\n'
    more = '[branch "main"]\n\turl = git@github.com:no/no.git\n'
    other = '[remote "other"]\n\turl = git@github.com:other/widgets.git\n'
    names = [
        (found := find_hosted(write_config(tmp_path / str(number), text))) and found.name
        for number, text in enumerate((first, first + origin + more, more, first + other, "\0["))
    ]
    assert names == ["me/widgets", "acme/widgets", None, None, None]
    assert find_hosted(str(tmp_path / "nowhere")) is None


def test_a_worktree_has_the_remote_of_its_repository(tmp_path: Path) -> None:
    git_dir = tmp_path / "main" / ".git"
    write_config(git_dir, '[remote "origin"]\n\turl = git@github.com:acme/widgets.git\n')
    linked = git_dir / "worktrees" / "w"
    linked.mkdir(parents=True)
    (linked / "HEAD").write_text("ref: refs/heads/topic\n")
    (linked / "commondir").write_text("../..\n")
    work = tmp_path / "w"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {linked}\n")
    assert find_checkout(str(work)).context() == {
        "cwd": str(work),
        "gitRoot": str(work),
        "repository": "acme/widgets",
        "hostType": "github",
        "repositoryHost": "github.com",
        "branch": "topic",
    }
    assert plain_checkout(str(work)).context() == {"cwd": str(work)}
