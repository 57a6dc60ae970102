"""The files that rules keep from being read, found on disk."""

from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Rule
from trimtab.permissions.denied_files import find_denied_reads, search


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in (".env", "a/.env", "a/b/secret.pem", "a/plain.txt", ".git/objects/.env", "keys/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "link").symlink_to("a/.env")
    return tmp_path.resolve()


def found(place: Path, *texts: str, folder: str = "") -> list[str]:
    result = search(str(place / folder), rules(*texts), str(place))
    assert result.complete
    return sorted(str(Path(path).relative_to(place)) for path in result.found)


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("read(.env)", [".env", "a/.env", "link"]),
        ("read(a/.env)", ["a/.env", "link"]),
        ("read(b)", ["a/b"]),
        ("read(keys)", ["keys"]),
        ("read(nothing)", []),
        ("read(lain.txt)", []),
        ("write(.env)", []),
    ],
)
def test_a_name_counts_in_every_folder_and_a_folder_stands_for_its_files(
    place: Path, rule: str, names: list[str]
) -> None:
    assert found(place, rule) == names


def test_a_path_in_full_counts_only_in_its_folder(place: Path) -> None:
    rule = f"read({place}/a/plain.txt)"
    assert found(place, rule) == ["a/plain.txt"]
    assert found(place, rule, folder="keys") == []
    assert found(place, f"read({place}/gone)") == []
    result = search(str(place / "a"), rules("read(../keys)"), str(place / "a"))
    assert result.found == ()
    result = search(str(place), rules("read(../keys)"), str(place / "a"))
    assert result.found == (str(place / "keys"),)


def test_excluded_content_counts_below_its_root(place: Path) -> None:
    rule = Rule("read", "*.pem", "file", str(place / "a"))
    other = Rule("read", "*.pem", "file", str(place / "keys"))
    assert search(str(place), [rule], str(place)).found == (str(place / "a/b/secret.pem"),)
    assert search(str(place), [other], str(place)).found == ()


@pytest.mark.parametrize(("entries", "complete"), [(2, False), (1_000, True)])
def test_a_folder_that_is_too_large_is_said_to_be(
    place: Path, entries: int, complete: bool
) -> None:
    result = search(str(place), rules("read(.env)"), str(place), entries)
    assert result.complete is complete


def test_a_search_that_takes_too_long_is_said_to(place: Path) -> None:
    assert not search(str(place), rules("read(.env)"), str(place), max_seconds=-1).complete


def test_the_folders_of_a_policy_are_searched_except_the_temporary_one(tmp_path: Path) -> None:
    ws, extra, temp = (tmp_path.resolve() / name for name in ("ws", "extra", "temp"))
    for folder in (ws, ws / "below", extra, temp):
        folder.mkdir()
        (folder / ".env").write_text("x")
    policy = msgspec.structs.replace(
        POLICY,
        cwd=str(ws),
        roots=(str(ws), str(ws / "below"), str(extra), str(temp)),
        temp=str(temp),
        deny=rules("read(.env)", "write", "read"),
    )
    denied = find_denied_reads(policy)
    assert sorted(denied.paths) == sorted(
        str(folder / ".env") for folder in (ws, ws / "below", extra)
    )
    assert denied.roots == (str(ws), str(extra))
    assert denied.problem == ""


def test_without_such_rules_nothing_is_searched() -> None:
    policy = msgspec.structs.replace(POLICY, deny=rules("write", "read", "shell(rm)"))
    denied = find_denied_reads(policy)
    assert (denied.paths, denied.roots, denied.problem) == ((), policy.roots, "")


def test_a_path_named_in_full_is_denied_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    secret = tmp_path.resolve() / "secret"
    secret.write_text("x")
    ws = str(tmp_path.resolve() / "ws")
    policy = msgspec.structs.replace(
        POLICY, cwd=ws, roots=(ws,), deny=rules(f"read({secret})", f"read({secret})")
    )
    assert find_denied_reads(policy).paths == (str(secret),)
