"""The files that rules keep from being read, found on disk."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Rule
from trimtab.permissions.denied_files import find_denied_reads, find_secrets, search


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


def test_the_secrets_in_granted_folders_are_found_by_name(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    for name in ("a/.env", "a/sub/id_rsa", "a/sub/x.txt", "a/.ssh/config", "b/token.txt", "b/c/y"):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (place / "link").symlink_to(place / "a")
    (place / "zlink").symlink_to(place / "a")
    folders = [str(place / name) for name in ("link", "a", "zlink", "b")]
    policy = msgspec.structs.replace(POLICY, roots=(), granted=tuple(folders))
    found = find_secrets(policy)
    names = ("a/.env", "a/.ssh", "a/sub/id_rsa", "b/token.txt")
    assert sorted(found.paths) == [str(place / name) for name in names]
    assert found.roots == (str(place / "a"), str(place / "b"))
    working_there = msgspec.structs.replace(policy, roots=(str(place / "b"),))
    assert str(place / "b/token.txt") not in find_secrets(working_there).paths


def test_a_granted_folder_that_is_named_like_a_secret_is_searched(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "my-tokens"
    folder.mkdir()
    (folder / "a.txt").write_text("x")
    (folder / "b.pem").write_text("x")
    policy = msgspec.structs.replace(POLICY, roots=(), granted=(str(folder),))
    assert find_secrets(policy).paths == (str(folder / "b.pem"),)


def test_the_search_goes_on_after_a_denied_folder_a_link_and_a_file(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    names = [f"{letter}{number}" for letter in "ab" for number in range(3)]
    for name in names:
        (place / name / "keys").mkdir(parents=True)
        (place / name / "keys" / "inner").mkdir()
        (place / name / "keys" / "inner" / "keys").write_text("x")
        (place / name / "plain").write_text("x")
        (place / name / "way").symlink_to(place)
    found = search(str(place), rules("read(keys)"), str(place)).found
    assert sorted(found) == [str(place / name / "keys") for name in names]


def test_rules_for_names_are_not_taken_for_paths(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    for name in ("+x", ".a", "..b", "UPPER.PEM", "b.pem"):
        (place / name).write_text("x")
    deny = rules("read(+x)", "read(.a)", "read(..b)")
    found = search(str(place), deny, str(place)).found
    assert sorted(found) == sorted(str(place / name) for name in ("+x", ".a", "..b"))
    excluded = [Rule("read", "*.pem", "file", str(place)), Rule("read", "+x", "file", str(place))]
    found = search(str(place), excluded, str(place)).found
    assert sorted(found) == sorted(str(place / name) for name in ("UPPER.PEM", "b.pem", "+x"))


def test_the_working_folder_is_searched_before_the_other_roots(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    for name in ("ws/in", "zz/in"):
        (place / name).mkdir(parents=True)
    roots = tuple(str(place / name) for name in ("zz", "zz/in", "ws/in", "ws"))
    policy = msgspec.structs.replace(
        POLICY, cwd=str(place / "ws"), roots=roots, deny=rules("read(.env)")
    )
    searched = find_denied_reads(policy).roots
    assert searched == tuple(str(place / name) for name in ("ws", "zz", "zz/in"))


@pytest.mark.parametrize(("entries", "complete"), [(7, False), (8, True)])
def test_the_limit_counts_every_entry(tmp_path: Path, entries: int, complete: bool) -> None:
    for number in range(7):
        (tmp_path / f"f{number}").write_text("x")
    result = search(str(tmp_path), rules("read(.env)"), str(tmp_path), entries)
    assert result.complete is complete


def test_the_clock_is_looked_at_from_time_to_time_in_a_large_folder(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"f{number}").touch()
    assert search(str(tmp_path), rules("read(.env)"), str(tmp_path), max_seconds=60.0).complete
    late = search(str(tmp_path), rules("read(.env)"), str(tmp_path), max_seconds=0.0)
    assert not late.complete


def test_other_names_of_a_denied_file_are_denied_too(place: Path) -> None:
    (place / "keys/hard").hardlink_to(place / ".env")
    (place / "free").hardlink_to(place / "a/plain.txt")
    (place / "link2").symlink_to("keys/hard")
    policy = msgspec.structs.replace(
        POLICY, cwd=str(place), roots=(str(place),), deny=rules(f"read({place}/.env)")
    )
    denied = find_denied_reads(policy)
    assert sorted(denied.paths) == [str(place / ".env"), str(place / "keys/hard")]
    moved = find_denied_reads(policy, [str(place / "a/plain.txt")])
    assert str(place / "free") in moved.paths


@pytest.mark.skipif(os.geteuid() == 0, reason="root can look into every folder")
def test_a_folder_of_ours_that_is_closed_to_us_is_denied_as_a_whole(place: Path) -> None:
    (place / "a").chmod(0)
    try:
        assert found(place, "read(.env)") == [".env", "a", "link"]
    finally:
        (place / "a").chmod(0o700)
