"""What is found in a command: identifiers, paths, addresses, redirections."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.permissions.shell.programs.filters import awk_is_plain, sed_is_plain
from trimtab.permissions.shell.verdict.analyse import analyse


def names(command: str) -> list[str]:
    return [found.identifier for found in analyse(command, "/work", "/home/me").commands]


@pytest.mark.parametrize(
    ("command", "identifiers"),
    [
        ("ls -la", ["ls"]),
        ("git -C x -c a=b --git-dir y --work-tree=z push origin", ["git push"]),
        ("git --namespace n --exec-path=/x log", ["git log"]),
        ("git --config-env a=B status", ["git status"]),
        ("git", ["git"]),
        ("gh pr view 3", ["gh pr view"]),
        ("gh api repos/x", ["gh api"]),
        ("gh -R o/r issue list", ["gh issue list"]),
        ("npm install x", ["npm install"]),
        ("npm run build -- --x", ["npm run build"]),
        ("pnpm run test", ["pnpm run test"]),
        ("yarn build", ["yarn build"]),
        ("./git push", ["./git"]),
        ("/usr/bin/ls x", ["/usr/bin/ls"]),
        ("a | b && c || d; e & f", list("abcdef")),
        ("sudo -u x env A=1 nice -n 2 ls", ["sudo", "env", "nice", "ls"]),
        ("timeout -k 1 5 ls", ["timeout", "ls"]),
        ("find . -exec grep x {} +", ["find", "grep"]),
        ("xargs -0 -n 1 grep x", ["xargs", "grep"]),
        ("bash -c 'a; b'", ["bash", "a", "b"]),
        ("x=$(a) b", ["b", "a"]),
        ("export X=1", ["export"]),
        ("[ -f x ]", ["["]),
        ("[[ -f x ]]", ["[["]),
        ("x=1", []),
        ("", []),
        ("# nothing", []),
    ],
)
def test_identifiers(command: str, identifiers: list[str]) -> None:
    assert names(command) == identifiers


@pytest.mark.proves("PERM-01")
def test_the_assessor_gives_commands_paths_addresses_and_whether_it_may_be_offered() -> None:
    described = analyse("curl https://a.test/x > out/y && ls src", "/work", "/home/me").describe()
    assert described == {
        "commands": [
            {"identifier": "curl", "readOnly": False},
            {"identifier": "ls", "readOnly": True},
        ],
        "possiblePaths": ["out/y", "src"],
        "possibleUrls": [{"url": "https://a.test/x"}],
        "hasWriteFileRedirection": True,
        "canOfferSessionApproval": False,
    }
    offered = analyse("npm test", "/work", "/home/me").describe()
    assert offered["canOfferSessionApproval"] is True
    assert analyse("npm $x", "/work").describe()["canOfferSessionApproval"] is False


@pytest.mark.parametrize(
    ("script", "plain"),
    [
        ("s/a/b/g", True), ("10,20p", True), ("/re/d", True), ("$!N;P;D", True), ("s|a|b|;s#x#y#gI", True),
        ("/x/,/y/{p;d}", True), ("1~2p", True), ("y/abc/def/", True), (":a;N;$!ba;s/\\n/ /g", True), ("5q", True),
        ("i\\\nhello", True), ("a text", True), ("s/x/\\/etc\\/w f/", True), ("r f", False), ("/foo/!s/^/# /", True),
        ("s/a/b/w out", False), ("s/a/b/e", False), ("1e ls", False), ("w out", False), ("s/a/b/;w x", False),
        ("1,5W f", False), ("s,a,b,\nw f", False), ("s/a/b/ ; e", False), ("p w", False), ("s/a", False), ("s/[/]/x/w f", False),
    ],
)  # fmt: skip
def test_sed_scripts(script: str, plain: bool) -> None:
    assert sed_is_plain(script) is plain


@pytest.mark.parametrize(
    ("program", "plain"),
    [
        ("{print $1}", True), ("$1 > 5", True), ("/a|b/{print}", True), ("{x=$1/2; print x}", True), ("!seen[$0]++", True),
        ("{ if ($1 > 2) print $1 }", True), ('$0 ~ /x"y/ {print}', True), ("{print (1>2)}", True), ('{print "a > b | c"}', True),
        ("{a[$1]++} END{for(k in a) print k, a[k]}", True), ('{ getline < "f"; print }', False), ('{ gsub(/[|>]/,""); print }', True),
        ('{print > "f"}', False), ('{print | "sh"}', False), ('BEGIN{system("x")}', False), ("{print $1 > $2}", False),
        ('BEGIN { "date" | getline d }', False), ('{print $1 >> "f"}', False), ('{print; print $0 > "f"}', False), ("{@f()}", False),
        ('BEGIN{for(i=0;i<1;i++) print i > "f"}', False), ('{print 1,\n2 > "f"}', False), ('{printf("%s", x) > "f"}', False),
        ('(1) /"/ { print | "sh" }', False),
    ],
)  # fmt: skip
def test_awk_programs(program: str, plain: bool) -> None:
    assert awk_is_plain(program) is plain


@given(st.text(st.sampled_from("ls;rm x$(){}`'\"\\\n&|<>#[]!=*~-abc01"), max_size=60))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    analysis = analyse(text, "/work", "/home/me")
    if analysis.read_only:
        assert all(found.read_only for found in analysis.commands)
        assert not analysis.targets


@given(st.text(max_size=40))
def test_a_quoted_text_is_never_taken_for_commands(text: str) -> None:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    assert names(f"echo {quoted}") == ["echo"]


@given(st.sampled_from(["ls", "cat x", "git status", "rm x"]), st.text("ab $'\"`\\", max_size=12))
def test_a_command_after_any_word_is_still_found(command: str, word: str) -> None:
    analysis = analyse(f"echo {word}\n{command}", "/work", "/home/me")
    found = [one.words[0] for one in analysis.commands if one.words]
    assert (
        command.split(maxsplit=1)[0] in found
        or not analysis.is_known
        or "'" in word
        or '"' in word
        or "\\" in word
    )


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("nice touch --", "touch"),
        ("timeout 5 touch --", "touch"),
        ("xargs touch --", "touch"),
        ("nice -n 5 -- touch a", "touch"),
        ("git -C x push --", "git push"),
    ],
)
def test_a_mark_at_the_end_hides_no_command(command: str, inner: str) -> None:
    found = analyse(command, "/work", "/home/me").describe()["commands"]
    assert found[-1] == {"identifier": inner, "readOnly": False}


def test_a_line_that_goes_on_inside_quotes_is_one_word() -> None:
    described = analyse('cat > "out/a\\\nb"', "/work", "/home/me").describe()
    assert described["possiblePaths"] == ["out/ab"]


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("git -c color.ui=never log", True),
        ("git -c core.pager=x log", False),
        ("cat -n notes", True),
        ("cat -5 notes", False),
        ("head -5 notes", True),
        ("fd -e py x -x grep y", True),
        ("fd --unknown x -x grep y", False),
        ("fd $x y -x grep z", False),
        ('uniq -- "${x:-a}"', True),
        ("uniq -- ${x:-a}", False),
        ("sort -k $x notes", False),
        ('sort -k "$x" notes', True),
        ("rg -e $x", False),
        ("head -n $x notes", True),
        ("env -u HOME", True),
        ("env -u $x", False),
        ("eval f", False),
        ("f() { ls; }; eval f", True),
        ("f() { ls; }; bash -c f", False),
    ],
)
def test_what_only_reads(command: str, reads: bool) -> None:
    assert all(found.read_only for found in analyse(command, "/work").commands) is reads


@pytest.mark.parametrize(
    ("command", "identifiers"),
    [
        ('echo "`\\"rm\\" x`"', ["echo", "rm"]),
        ('echo `\\"rm\\" x`', ["echo", '"rm"']),
        ('"" ls', [""]),
        ('ls ""', ["ls"]),
        ("git submodule foreach", ["git submodule"]),
        ("git submodule foreach rm x", ["git submodule", "rm"]),
        ("git submodule foreach 'rm x; ls'", ["git submodule", "rm", "ls"]),
        ("git submodule update rm x", ["git submodule"]),
        ("parallel echo ::: rm", ["parallel", "echo"]),
    ],
)
def test_identifiers_inside_quotes_and_carriers(command: str, identifiers: list[str]) -> None:
    assert names(command) == identifiers


def test_what_parallel_runs_is_unknown_if_only_its_arguments_are_given() -> None:
    assert analyse("parallel ::: 'rm x'", "/work").dynamic


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("cat /etc/$x", ["/etc/"]),
        ("cat ../$x", ["/work/../"]),
        ("cd $unknown; cat ../$x", ["/", "/work/../"]),
        ("cat a$x", []),
    ],
)
def test_the_known_part_of_a_path_is_where_it_looks(command: str, places: list[str]) -> None:
    assert analyse(command, "/work", "/home/me").reads == places


@pytest.mark.parametrize(
    ("command", "critical"),
    [("rmdir /home/me", True), ("rmdir /home/you", False), ("rmdir /work", True)],
)
def test_the_home_directory_and_the_workspace_must_not_be_removed(
    command: str, critical: bool
) -> None:
    assert bool(analyse(command, "/work", "/home/me").hazards) is critical


def test_a_pattern_that_matches_a_file_named_like_an_option_is_a_hazard(tmp_path: Path) -> None:
    (tmp_path / "--pre=evil").touch()
    (tmp_path / "inside").mkdir()
    for command, hazardous in (
        ("rg x *", True),
        ("rg x -*", True),
        ("rg x [-]*", True),
        ("rg x -- *", False),
        ("rg x ./*", False),
        ("rg x *.py", False),
        ("cd inside && rg x *", False),
        ("cd $somewhere && rg x *", True),
        ("ls *", False),
        ("echo *", False),
    ):
        assert bool(analyse(command, str(tmp_path)).hazards) is hazardous, command


@pytest.mark.parametrize(
    "word", ["$x", '"$@"', '"${a[@]}"', '"${a[@]:1}"', '"${!a[@]}"', "./*", "$(cat a)"]
)
def test_a_word_that_may_become_several_hides_no_command(word: str) -> None:
    assert analyse(f"nice -n {word} ls", "/work").dynamic


@pytest.mark.parametrize("word", ['"$x"', '"$*"', '"${a[*]}"', '"${#a[@]}"', '"${x:-1}"', "5"])
def test_a_word_that_stays_one_is_a_value(word: str) -> None:
    assert not analyse(f"nice -n {word} ls", "/work").dynamic
