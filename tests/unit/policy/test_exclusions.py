"""Content exclusions: their sources, and the repositories and paths they match."""

import json
from pathlib import Path

import pytest

from customizekit import write
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.denied_files import search
from trimtab.permissions.exclusions import is_excluded, to_ignored
from trimtab.permissions.processor import Permissions
from trimtab.policy.exclusions import read_policy, to_rules


@pytest.mark.parametrize(
    ("pattern", "covered", "free"),
    [
        ("/src/kernel.rs", ["src/kernel.rs"], ["src/other.rs", "a/src/kernel.rs"]),
        (
            "secrets.json",
            ["secrets.json", "a/b/SECRETS.json"],
            ["a/secrets.json5", "asecrets.json"],
        ),
        ("secret*", ["secret", "a/secrets.txt", "secret/inner/x"], ["a/nosecret"]),
        ("*.cfg", ["a.cfg", "b/c.cfg"], ["a.cfgs"]),
        ("/scripts/**", ["scripts/a", "scripts/b/c", "scripts"], ["a/scripts/b"]),
        ("**/.env", [".env", "a/b/.env"], ["a/.environment"]),
        ("a/b", ["a/b", "x/a/b/c"], ["ab", "a/c/b"]),
        ("/a/**/z", ["a/z", "a/b/c/z"], ["b/a/z"]),
        ("*.{pem,key}", ["x.pem", "d/y.key"], ["x.pub"]),
        ("/folder/", ["folder/a"], ["other/folder/a"]),
        ("file?.txt", ["file1.txt"], ["file12.txt", "file/.txt"]),
        ("**", ["anything/at/all"], []),
    ],
)
def test_patterns_mean_what_they_mean_on_github(
    pattern: str, covered: list[str], free: list[str]
) -> None:
    assert [path for path in covered if not is_excluded(f"/r/{path}", "/r", pattern)] == []
    assert [path for path in free if is_excluded(f"/r/{path}", "/r", pattern)] == []
    assert not is_excluded(f"/other/{covered[0]}", "/r", pattern)


@pytest.mark.parametrize(
    ("pattern", "cwd", "expected"),
    [
        ("*.cfg", "/r", ["**/*.cfg"]),
        ("/a/b", "/r", ["**/r/a/b", "/a/b"]),
        ("/a/b", "/r/a", ["**/r/a/b", "/b"]),
        ("/a", "/r/a/b", ["**/r/a", "/**"]),
        ("/a", "/elsewhere", ["**/r/a"]),
        ("/**/b/c", "/r/b", ["**/r/**/b/c", "/c", "/**/b/c"]),
    ],
)
def test_a_search_below_the_root_gets_what_is_left_of_a_pattern(
    pattern: str, cwd: str, expected: list[str]
) -> None:
    assert list(to_ignored(pattern, "/r", cwd)) == expected


def make_repository(folder: Path, remote: str) -> str:
    write(folder / ".git/config", f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n')
    return str(folder.resolve())


@pytest.mark.parametrize(
    "name",
    [
        "https://github.com/octo/app",
        "https://github.com/octo/app.git",
        "ssh://git@github.com:22/octo/app",
        "git@github.com:*/app",
        "octo/app",
        "app",
    ],
)
@pytest.mark.parametrize("remote", ["https://github.com/Octo/App.git", "git@github.com:octo/app"])
def test_a_repository_is_known_by_any_form_of_its_address(
    tmp_path: Path, name: str, remote: str
) -> None:
    root = make_repository(tmp_path, remote)
    assert to_rules({name: ["x"]}, "file", [root]) == (
        Rule("read", "x", "file", root),
        Rule("write", "x", "file", root),
    )
    assert to_rules({f"{name}-other": ["x"]}, "file", [root]) == ()


def test_repositories_below_a_folder_are_found(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "team/app", "git@github.com:octo/app.git")
    (rule, _) = to_rules({"octo/app": ["/x"]}, "file", [str(tmp_path)])
    assert rule.root == root


def test_the_machines_policy_is_read_from_all_its_files(tmp_path: Path) -> None:
    write(tmp_path / "a.json", json.dumps({"contentExclusion": {"*": ["a"]}, "hooks": {}}))
    write(tmp_path / "b.json", json.dumps({"hooks": {}}))
    write(tmp_path / "c.txt", "no JSON")
    assert read_policy(str(tmp_path)) == {str(tmp_path / "a.json"): {"*": ["a"]}}
    assert read_policy(str(tmp_path / "missing")) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"contentExclusion": ', r"a\.json cannot be read"),
        ("[]", "it is not a JSON object"),
        ('{"contentExclusions": {"*": ["a"]}}', "contentExclusions is not known"),
        (
            '{"contentExclusion": {"*": ["a"]}, "contentExclusion": {}}',
            "contentExclusion is given twice",
        ),
        ('{"permissions": {"deny": ["shell"]}}', "permissions counts in settings files only"),
    ],
)
def test_a_policy_that_cannot_be_read_lets_no_session_start(
    tmp_path: Path, text: str, problem: str
) -> None:
    write(tmp_path / "a.json", text)
    with pytest.raises(ConfigurationError, match=problem):
        read_policy(str(tmp_path))


@pytest.mark.parametrize("given", [None, [], {"*": "x"}, {"*": [""]}, {"*": ["{a"]}])
def test_an_exclusion_of_another_form_is_an_error(given: object) -> None:
    with pytest.raises(ConfigurationError, match="contentExclusion in file"):
        to_rules(given, "file", ["/"])


def test_files_that_rules_keep_from_being_read_are_found(tmp_path: Path) -> None:
    for name in ("a/.env", "b/c/.env", "secret/x", "plain", ".git/objects/ab/.env"):
        write(tmp_path / name, "x")
    (tmp_path / "link").symlink_to("a/.env")
    root = str(tmp_path.resolve())
    rules = [
        Rule("read", ".env", "file", root),
        Rule("read", f"{root}/plain"),
        Rule("read", "secret"),
    ]
    found = search(root, rules, root)
    named = {path.removeprefix(root + "/") for path in found.found}
    assert named == {"a/.env", "b/c/.env", "secret", "plain", "link"}
    assert found.complete
    assert search(f"{root}/b", rules, root).found == (f"{root}/b/c/.env",)
    assert search(f"{root}/secret", rules, root).found == (f"{root}/secret",)
    assert not search(root, rules, root, max_entries=2).complete
    assert search(root, [Rule("read", f"{root}/plain")], root, max_entries=0).complete


def test_what_is_forbidden_or_attached_in_a_session_outlives_other_rules(tmp_path: Path) -> None:
    image = write(tmp_path / "a.png", b"\x89PNG\r\n\x1a\n")
    judge = Permissions(Policy(cwd="/srv", roots=("/srv",), allow=(Rule("write"),)))
    agent = judge.for_agent()
    judge.trust_image(str(image))
    judge.forbid((Rule("read", ".env", "the organization octo", "/"),))
    judge.adopt(Policy(cwd="/srv", roots=("/srv",), allow_all_paths=True))
    assert "octo" in agent.find_objection("/srv/.env")
    assert agent.policy.images == (str(image.resolve()),)
    assert agent.policy.allow == ()
