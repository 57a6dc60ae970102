"""Variables that builtins set or unset, and what follows for the words that use them."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.shell.grammar.parser import parse
from trimtab.permissions.shell.grammar.syntax import Effort, Script
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.settings import note_settings

NO_RM = msgspec.structs.replace(
    POLICY, allow_all_tools=True, allow_all_paths=True, deny=rules("shell(rm)")
)


def read(text: str) -> tuple[Script, list[str]]:
    script, problem = parse(text, Effort(1000))
    assert problem is None
    return script, list(note_settings(script))


@pytest.mark.parametrize(
    ("text", "cleared"),
    [
        ("unset x y", {"x", "y"}),
        ("f() { local x; }", {"x"}),
        ("f() { declare x; typeset y; }", {"x", "y"}),
        ("f() { export x; readonly y; local z=1; }", set()),
        ("declare x; export y", set()),
    ],
)
def test_a_variable_may_lose_its_value(text: str, cleared: set[str]) -> None:
    assert read(text)[0].cleared == cleared


@pytest.mark.parametrize(
    "text", ["unset PATH", "unset HOME", "unset GIT_CONFIG_COUNT", 'unset "$x"']
)
def test_it_is_a_hazard_to_unset_what_decides_or_what_is_not_known(text: str) -> None:
    assert read(text)[1]
    assert not read("unset x LD_PRELOAD")[1]


def test_what_is_unset_by_a_name_that_is_not_known_may_be_any_variable() -> None:
    assert read('unset "$x"')[0].clears
    found = analyse('x=a; unset "$y"; cat src/$x', "/srv/project")
    assert found.reads == ["/srv/project/src/", "/srv/project/src/a"]


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("x=1; eval x=2", "x", 2),
        ("x=1; eval 'y=3; x=2'", "x", 2),
        ("x=1; trap 'x=\"2\"' EXIT", "x", 2),
        ("eval x=2", "x", 1),
        ("read x", "x", 1),
        ("printf -vx %s a", "x", 1),
        ("let x=1", "x", 1),
        ("declare x=1", "x", 1),
        ("mapfile -t x < f", "x", 1),
    ],
)
def test_every_value_that_a_variable_is_given_counts(text: str, name: str, count: int) -> None:
    assert len(read(text)[0].values.get(name, ())) == count


@pytest.mark.parametrize(
    "command",
    [
        *("IFS=/; x=rm/a; $x", "IFS=/; eval 'x=rm/a; $x'", "IFS=/ eval 'x=rm/a; $x'"),
        *(
            "IFS=/; trap 'x=rm/a; $x' EXIT",
            "f() { x=rm/a; $x; }; IFS=/; f",
            "read IFS <<< /; x=rm/a; $x",
        ),
        *(
            "printf -v IFS /; x=rm/a; $x",
            "for IFS in /; do x=rm/a; $x; done",
            "x=ls; unset x; $x rm a",
        ),
        *("x=ls; f() { local x; $x rm y; }; f", "unset x; $x rm y", "x=ls; eval x=rm; $x a"),
    ],
)
def test_a_command_is_not_known_by_a_value_that_may_have_changed(command: str) -> None:
    assert decide_shell(command, NO_RM).verdict == "ask"


@pytest.mark.parametrize(
    "command", ["$SHELL make; unset SHELL", "$x make; unset x", "unset x; $x make"]
)
def test_a_variable_that_is_unset_may_have_a_value_from_outside(command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(make)"))
    assert decide_shell(command, policy).verdict == "ask"


def test_words_are_separated_by_what_the_script_says_as_well() -> None:
    found = analyse("IFS=,; x=a,b; cat $x", "/srv/project")
    assert found.reads == ["/srv/project/a,b", "/srv/project/a", "/srv/project/b"]
    found = analyse("IFS=$(cat s); x=a,b; sort $x", "/srv/project")
    assert found.doubts


@pytest.mark.parametrize(
    ("command", "hazardous"),
    [
        ('export PATH="/opt/homebrew/bin:/usr/local/bin:$PATH"; ls', False),
        ('export PATH="$HOME/.cargo/bin:$PATH"; ls', False),
        ("PATH=$PATH:/usr/sbin ls", False),
        ('PATH="$PATH:/usr/local/opt/node@20/bin"; ls', False),
        ("PATH=/usr/bin ls", True),
        ("PATH=/tmp/x:$PATH ls", True),
        ('export PATH=".:$PATH"; ls', True),
        ('export PATH="$PATH:"; ls', True),
        ('PATH="$PATH:~/go/bin" ls', True),
        ('PATH="/usr/bin/../../tmp:$PATH" ls', True),
        ('PATH="$x:$PATH" ls', True),
        ('PATH="$HOME/bin:$PATH" ls', True),
        ("PATH=$PATH:/usr/bin; PATH=/tmp ls", True),
        ("HOME=/tmp; PATH=$HOME/.cargo/bin:$PATH; ls", True),
        ("read PATH; ls", True),
    ],
)
def test_only_folders_of_installed_programs_may_be_added_to_the_path(
    command: str, hazardous: bool
) -> None:
    assert bool(analyse(command, "/srv/project", "/home/me").hazards) is hazardous


@pytest.mark.parametrize(
    ("command", "hazardous"),
    [
        ("x=PATH=bin; export $x; ls", True),
        ("export {PATH=bin,A=1}; ls", True),
        ("export P{ATH,X}=bin; ls", True),
        ("PATH='$PATH:/usr/bin' ls", True),
        ("export A=$x; ls", False),
        ("export x[0]=1; ls", False),
    ],
)
def test_a_declaration_must_show_which_variable_it_sets(command: str, hazardous: bool) -> None:
    assert bool(analyse(command, "/srv/project", "/home/me").hazards) is hazardous


@pytest.mark.parametrize("word", ["\\export", '"export"', "ex''port"])
def test_what_is_no_declaration_for_the_shell_splits_its_words(word: str) -> None:
    assert not analyse("export A=$x; ls", "/srv/project", "/home/me").doubts
    found = analyse(f"{word} A=$x; ls", "/srv/project", "/home/me")
    assert found.doubts or found.hazards or not found.read_only


LISTING = msgspec.structs.replace(POLICY, allow=rules("shell(ls)"))


@pytest.mark.parametrize(
    "text",
    [
        "builtin read PATH < f; ls",
        "command -p printf -v PATH bin; ls",
        "builtin -- command -- unset PATH; ls",
        "p'r'intf -v PATH bin; ls",
        '"read" PATH < f; ls',
        "builtin export PATH=bin; ls",
        "command export {PATH,x}=bin; ls",
        "printf {-v,PATH} bin; ls",
        "printf * PATH bin; ls",
        'read a < f; read b < g; printf "$a" "$b" bin; ls',
        "read {PATH,x} < f; ls",
        "read PAT[H] < f; ls",
        "read $v < f; ls",
        'f() { read "$1"; }; f PATH < f; ls',
        "x=read; $x PATH < f; ls",
        "{builtin,read,PATH} < f; ls",
        "unset {PATH,x}; ls",
        "getopts x P{ATH,X}; ls",
        "let {PATH=0,x=1}; ls",
        "wait -p {PATH,x}; ls",
    ],
)
def test_a_builtin_in_disguise_sets_variables_all_the_same(text: str) -> None:
    """`bin/ls` ran under a rule for `ls`."""
    assert decide_shell(text, LISTING).verdict == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "builtin let 'x=a[$(./evil)]'; ls",
        "builtin test -v 'a[$(./evil)]'; ls",
        "command [ -v 'a[$(./evil)]' ]; ls",
        "builtin printf -v 'a[$(./evil)]' x; ls",
        "command export 'a[$(./evil)]=1'; ls",
        "read y < f; builtin let x=y; ls",
        'read y < f; builtin test -v "a[$y]"; ls',
        'read y < f; builtin declare -a "x=$y"; ls',
    ],
)
def test_what_a_builtin_in_disguise_evaluates_is_known_or_asked_about(text: str) -> None:
    """A command in a subscript ran under a rule for `ls`."""
    assert decide_shell(text, LISTING).verdict == "ask"


def test_a_variable_that_is_set_in_disguise_is_not_known() -> None:
    for setter in ("builtin read X < f", "read {X,Y} < f", "printf {-v,X} ./evil"):
        assert decide_shell(f"X=ls; {setter}; $X", LISTING).verdict == "ask"


@pytest.mark.parametrize(
    "text",
    [
        'printf "%s\\n" "$PATH"',
        "printf -- '%s: %s\\n' PATH x",
        'printf "$x\\n" PATH',
        "printf '%s\\n' {a,b} *.txt",
        "printf -v s '%s' \"$PATH\"; echo $s",
        'read -rp "$prompt" PROMPTED; echo $PROMPTED',
        'while getopts "ab:" o "$@"; do echo $o; done',
        "let x=2*3; echo $x",
        'wait "$pid"',
        "command ls",
    ],
)
def test_what_only_looks_like_setting_a_variable_is_not_asked_about(text: str) -> None:
    """`printf '%s\\n' "$PATH"` was, because PATH decides what runs."""
    assert decide_shell(text, POLICY).verdict == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "f() { local PATH; ls; }; f",
        "f() { declare -x PATH; ls; }; f",
        "f() { local x=PATH; local $x; ls; }; f",
        "f() { eval 'local PATH'; ls; }; f",
        "unset 'PATH[0]'; ls",
        "export -n GIT_CONFIG_COUNT; ls",
        "declare +x HOME; ls",
    ],
)
def test_what_decides_is_not_hidden_or_taken_away_in_part(text: str) -> None:
    """Without a PATH, `./ls` ran under a rule for `ls`."""
    assert decide_shell(text, LISTING).verdict == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "x='PATH=1'; (( x )); ls",
        "x=PATH=1; y=x; echo $(( y + 0 )); ls",
        "y=TH=1; x=PA$y; (( x )); ls",
        "x=PA; (( ${x}TH = 1 )); ls",
        "for x in PATH=1; do (( x )); done; ls",
        "x='PATH=1'; let y=x; ls",
        "x='PATH=1'; [[ x -eq 1 ]]; ls",
        "x='PATH=1'; echo ${a[x]}; ls",
        "let y=PATH=1; ls",
        "a=([PATH=1]=2); ls",
        "a=( [ PATH = 1 ]=2 ); ls",
        "declare a[PATH=1]=2; ls",
        "declare -a 'a=([PATH=1]=2)'; ls",
        "[ -v 'a[PATH=1]' ]; ls",
        "printf -v'a[PATH=1]' x; ls",
        "eval 'x=PATH=1'; (( x )); ls",
        "eval 'read x' <<< PATH=1; (( x )); ls",
    ],
)
def test_arithmetic_sets_what_decides_by_way_of_values_and_subscripts(text: str) -> None:
    """The folder `1` had an `ls`, which ran under a rule for `ls`."""
    assert decide_shell(text, LISTING).verdict == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "f() { local x y=1; echo $x; }; f",
        "declare -A m=([PATH]=a [HOME]=b); echo ${#m[@]}",
        "i=0; a=([i]=x [i+1]=y); echo $((i + 10#$i)) ${a[i]}",
        "x='1 + 2'; echo $((x))",
    ],
)
def test_what_only_looks_like_such_arithmetic_is_not_asked_about(text: str) -> None:
    assert decide_shell(text, POLICY).verdict == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "declare -l x=RM; $x a",
        "typeset -u x=a; cat $x",
        "REPLY=a; read < f; cat $REPLY",
        "MAPFILE=a; mapfile < f; cat $MAPFILE",
        "BASH_REMATCH=a; [[ b =~ . ]]; cat $BASH_REMATCH",
        "OPTARG=a; getopts x: y; cat $OPTARG",
    ],
)
def test_a_value_is_not_known_that_the_shell_changes_unseen(text: str) -> None:
    assert "/srv/project/a" not in analyse(text, "/srv/project").reads
