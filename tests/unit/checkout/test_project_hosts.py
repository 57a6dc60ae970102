"""The hosts from which a project is fetched and built."""

from pathlib import Path

from trimtab.checkout.project_hosts import find_hosts


def test_the_remote_and_the_manifests_imply_hosts(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = https://github.com/o/r.git\n'
        '[remote "own"]\n\turl = git@git.test:o/r.git\n[remote "here"]\n\turl = ../other\n'
    )
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / ".npmrc").write_text("registry=https://evil.test\n")
    assert find_hosts(str(tmp_path)) == [
        "https://github.com",
        "https://api.github.com",
        "https://git.test:22",
        "https://registry.npmjs.org",
    ]


def test_a_remote_whose_host_is_no_plain_name_implies_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for host in ("*", "*.test", "a)b", "a,url(b", "a b", "ünï.test", "-x"):
        config = f'[remote "origin"]\n\turl = https://{host}/o/r.git\n'
        (tmp_path / ".git" / "config").write_text(config)
        assert find_hosts(str(tmp_path)) == []


def test_a_folder_without_manifests_implies_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "package.json").mkdir()
    assert find_hosts(str(tmp_path)) == []
