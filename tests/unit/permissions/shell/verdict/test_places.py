"""Which paths words may mean, and where a command runs."""

import os
from pathlib import Path

import pytest

from trimtab.permissions.shell.grammar.syntax import Command
from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.verdict.places import MOST, Places, returns

NEXT = Command(joint=";", group=1)
IF_DONE = Command(joint="&&", group=1)
ELSEWHERE = Command(joint="&&", group=2)
HOME_ALONE = Places("/srv/project", "")


def make_places(*steps: Command | str) -> Places:
    """Places after commands and, for each text, a `cd` into it."""
    places = Places("/srv/project", "/home/someone")
    places.enter(NEXT, moves=True)
    for step in steps:
        if isinstance(step, Command):
            places.enter(step, moves=True)
        else:
            places.change([Argument(step)], "cd", stays=False)
    return places


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((), ["/srv/project/x"]),
        ((NEXT, "a", IF_DONE), ["/srv/project/a/x"]),
        ((NEXT, "a", ELSEWHERE), ["/srv/project/x", "/srv/project/a/x"]),
        ((ELSEWHERE, "a", IF_DONE), ["/srv/project/x", "/srv/project/a/x"]),
        ((NEXT, "a", NEXT), ["/srv/project/x", "/srv/project/a/x"]),
        ((NEXT, "/etc", IF_DONE), ["/etc/x"]),
        ((NEXT, "a", IF_DONE, "-", IF_DONE), ["/srv/project/x", "/srv/project/a/x"]),
        ((NEXT, UNKNOWN, IF_DONE), []),
        ((NEXT, UNKNOWN, IF_DONE, "a", NEXT), []),
        ((NEXT, UNKNOWN, IF_DONE, "-"), []),
        ((NEXT, ""), []),
    ],
)
def test_a_word_means_a_file_in_every_folder_the_command_may_run_in(
    steps: tuple[Command | str, ...], found: list[str]
) -> None:
    places = make_places(*steps)
    assert places.resolve("x") == found
    assert places.unknown is (not found)
    assert places.resolve("/y") == ["/y"]


@pytest.mark.parametrize(
    ("operands", "program", "found"),
    [
        ([], "cd", ["/home/someone/x"]),
        (["a", "b"], "cd", []),
        (["a"], "pushd", ["/srv/project/a/x"]),
        ([], "popd", ["/srv/project/x"]),
        (["a"], "popd", []),
        (["-"], "pushd", ["/srv/project/x"]),
        (["-", "a"], "cd", []),
    ],
)
def test_operands_decide_where_a_change_of_folder_leads(
    operands: list[str], program: str, found: list[str]
) -> None:
    places = make_places()
    places.change([Argument(text) for text in operands], program, stays=False)
    assert places.resolve("x") == found


def test_a_pattern_leads_to_a_folder_that_is_not_known() -> None:
    places = make_places()
    places.change([Argument("a*", pattern=True)], "cd", stays=False)
    assert places.unknown


def test_without_a_home_folder_it_is_not_known_where_cd_leads() -> None:
    places = Places("/srv/project", "")
    places.enter(NEXT, moves=True)
    places.change([], "cd", stays=False)
    assert places.unknown


def test_folders_are_followed_up_to_a_number() -> None:
    places = make_places()
    for index in range(MOST - 1):
        places.enter(NEXT, moves=True)
        places.change([Argument(f"/a{index}")], "cd", stays=False)
    assert not places.unknown
    places.enter(NEXT, moves=True)
    assert len(places.resolve("x")) == MOST
    places.change([Argument("/b")], "cd", stays=False)
    assert places.unknown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"a/{UNKNOWN}", ["/srv/project/a/"]),
        (f"a/b{UNKNOWN}/c", ["/srv/project/a/"]),
        (f"/etc/{UNKNOWN}", ["/etc/"]),
        (f"/etc{UNKNOWN}", ["/"]),
        (f"../{UNKNOWN}", ["/srv/project/../"]),
        (f"a{UNKNOWN}", []),
        (UNKNOWN, []),
        (f"{UNKNOWN}/etc", []),
    ],
)
def test_of_a_word_that_is_partly_known_the_folder_counts(text: str, found: list[str]) -> None:
    assert make_places().resolve(text) == found


def test_a_way_up_from_an_unknown_folder_counts_from_the_first() -> None:
    places = make_places(NEXT, UNKNOWN)
    assert places.resolve(f"../{UNKNOWN}") == ["/srv/project/../"]
    assert places.resolve(f"a/{UNKNOWN}") == []


def test_files_named_like_options_are_found_where_a_pattern_matches_them(tmp_path: Path) -> None:
    for name in ("-a", "-bc", "d", "e-"):
        (tmp_path / name).touch()
    places = Places(str(tmp_path), "")
    assert sorted(places.find_options("*") or ()) == ["-a", "-bc"]
    assert places.find_options("-b*") == ["-bc"]
    assert places.find_options("?a/x") == ["-a"]
    assert places.find_options(f"{UNKNOWN}c") == ["-bc"]
    assert places.find_options("d*") == []
    assert Places(str(tmp_path / "none"), "").find_options("*") == []
    assert make_places(NEXT, UNKNOWN).find_options("*") is None


@pytest.mark.parametrize(
    ("argument", "certain", "found"),
    [
        (Argument("/x/y"), True, ["/x/y"]),
        (Argument("/x/y"), False, []),
        (Argument("/etc"), False, ["/etc"]),
        (Argument("/etc/../x"), False, []),
        (Argument("/"), True, ["/"]),
        (Argument("/"), False, ["/"]),
        (Argument("/dev/null"), True, []),
        (Argument("/dev/null"), False, []),
        (Argument("/dev/fd/3"), True, []),
        (Argument("/dev/fd/3"), False, []),
        (Argument("/dev/sda"), False, ["/dev/sda"]),
        (Argument("/srv/project/a"), False, ["/srv/project/a"]),
        (Argument("/home/someone/a"), False, ["/home/someone/a"]),
        (Argument("/etc/a*b", pattern=True), True, ["/etc/"]),
        (Argument("/etc/a?b", pattern=True), False, ["/etc/"]),
        (Argument("/etc/[a]/b", pattern=True), False, ["/etc/"]),
        (Argument("a*", pattern=True), True, ["a*"]),
        (Argument("-a"), False, []),
        (Argument("-I/etc"), False, ["/etc"]),
        (Argument("-I/"), False, []),
        (Argument("-I./a"), False, ["./a"]),
        (Argument("-I~/a"), False, ["~/a"]),
        (Argument("-Ia"), False, []),
        (Argument("--to=a"), False, ["a"]),
        (Argument("a=/etc/b"), False, ["a=/etc/b", "/etc/b"]),
        (Argument("https://a.example/b=/etc"), False, []),
        (Argument("a"), False, ["a"]),
        (Argument("a b"), False, []),
        (Argument("./a b"), False, ["./a b"]),
        (Argument("~/a b"), False, ["~/a b"]),
        (Argument("a\nb"), False, []),
        (Argument(""), False, []),
        (Argument(UNKNOWN), False, []),
        (Argument(f"/etc/{UNKNOWN}"), False, [f"/etc/{UNKNOWN}"]),
        (Argument(f"/etc{UNKNOWN}"), False, [f"/etc{UNKNOWN}"]),
    ],
)
def test_what_may_be_a_path_in_an_argument(
    argument: Argument, certain: bool, found: list[str]
) -> None:
    assert make_places().paths_in(argument, certain=certain) == found


@pytest.mark.parametrize(
    ("argument", "critical"),
    [
        (Argument("/"), True),
        (Argument("/etc"), True),
        (Argument("/etc/"), True),
        (Argument("/etc/x"), False),
        (Argument("/srv"), True),
        (Argument("/srv/project"), True),
        (Argument("/srv/project/a/.."), True),
        (Argument("/srv/proj"), False),
        (Argument("/srv/project/a"), False),
        (Argument("/home/someone"), True),
        (Argument("/home/someone/a"), False),
        (Argument("/home/other"), False),
        (Argument(".."), True),
        (Argument("../other"), False),
        (Argument("a"), False),
        (Argument(".git"), True),
        (Argument("a/.git"), True),
        (Argument("a.git"), False),
        (Argument("*"), False),
        (Argument("*", pattern=True), True),
        (Argument("./*", pattern=True), True),
        (Argument(".*", pattern=True), True),
        (Argument("[!.]*", pattern=True), True),
        (Argument("a*", pattern=True), False),
        (Argument("a/*", pattern=True), False),
        (Argument("../*", pattern=True), True),
        (Argument("/etc/*", pattern=True), True),
        (Argument("/etc/x/*", pattern=True), False),
        (Argument(f"/{UNKNOWN}"), True),
        (Argument(f"{UNKNOWN}/a"), True),
        (Argument(f"/etc/{UNKNOWN}"), False),
        (Argument(UNKNOWN), False),
    ],
)
def test_what_everything_rests_on_must_not_be_removed(argument: Argument, critical: bool) -> None:
    assert make_places().is_critical(argument) is critical


def test_without_a_home_folder_the_workspace_must_not_be_removed() -> None:
    assert HOME_ALONE.is_critical(Argument("/srv/project"))
    assert not HOME_ALONE.is_critical(Argument("/home/someone"))
    assert HOME_ALONE.paths_in(Argument("/home/someone/a")) == ["/home/someone/a"]
    assert HOME_ALONE.paths_in(Argument("/x")) == []


@pytest.mark.parametrize(
    ("operands", "program", "back"),
    [
        ([], "popd", True),
        (["a"], "popd", False),
        (["-"], "popd", False),
        (["-"], "cd", True),
        (["-", "-"], "cd", False),
        (["a"], "cd", False),
        ([], "cd", False),
    ],
)
def test_some_commands_lead_back(operands: list[str], program: str, back: bool) -> None:
    assert returns([Argument(text) for text in operands], program) is back


def test_git_takes_a_folder_with_the_files_of_a_repository_for_one(tmp_path: Path) -> None:
    for name in ("bare/objects/info", "bare/deeper", "plain/objects", "own/.git", "own/objects"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("bare/HEAD", "own/HEAD", "HEAD"):
        (tmp_path / name).touch()
    (tmp_path / "objects").mkdir()
    (tmp_path / "link").symlink_to("bare/deeper")
    places = Places(str(tmp_path), "")
    found = str((tmp_path / "bare").resolve())
    for folders in (["bare"], ["bare/deeper"], ["bare", "deeper"], ["plain", "../bare"], ["link"]):
        assert places.find_repository([Argument(folder) for folder in folders]) == found
    for folder in (".", "plain", "own", "..", "/"):
        assert places.find_repository([Argument(folder)]) == ""


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = ../evil\n",
        "[CORE]FSMONITOR=../evil\n",
        "\ufeff[core]\n\thooksPath = .\n",
        "[include]\n\tpath = ../more\n",
        '[includeIf "gitdir:**"]\n\tpath = ../more\n',
        "[alias]\n\tst = !./evil\n",
        '[filter "x"]\n\tclean = ./evil\n',
        '[remote "origin"]\n\tuploadpack = ./evil\n',
        '[submodule "x"]\n\tupdate = !./evil\n',
        "# \n" * 600_000,
    ],
)
def test_a_repository_below_counts_if_its_settings_start_programs(
    tmp_path: Path, settings: str
) -> None:
    folder = tmp_path / "sub/.git"
    folder.mkdir(parents=True)
    (folder / "config").write_text(settings)
    places = Places(str(tmp_path), "/home/me")
    assert places.find_repository([Argument("sub")]) == os.path.realpath(tmp_path / "sub")
    assert places.find_repository([]) == ""


@pytest.mark.parametrize(
    "settings",
    [
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://x.test/y\n',
        '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n',
        "[core]\n\tfsmonitor = false\n\tpager = cat\n",
        '[submodule "x"]\n\tupdate = rebase\n[diff]\n\trenames = true\n',
    ],
)
def test_an_ordinary_repository_below_is_left_alone(tmp_path: Path, settings: str) -> None:
    folder = tmp_path / "sub/.git"
    folder.mkdir(parents=True)
    (folder / "config").write_text(settings)
    os.mkfifo(folder / "config.worktree")
    assert Places(str(tmp_path), "/home/me").find_repository([Argument("sub")]) == ""


def test_the_names_of_links_are_found_within_words(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/opt")
    places = Places(str(tmp_path), "")
    for text, found in (
        ("-olink", ["link"]),
        ("-qolink/x", ["link/x"]),
        ("x=@a,link;b", ["x=@a,link;b", "@a,link;b", "link"]),
        ("HEAD:link", ["HEAD:link", "link"]),
        ("-oline", []),
    ):
        assert places.paths_in(Argument(text)) == found
