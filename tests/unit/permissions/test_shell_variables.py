"""Variables that a script sets, or computes with, by names and words which are not written out."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.shell.verdict.analyse import analyse

SETTING = r"""
printf -v "$(cat names)" x
printf -v "$k" x
printf -v$k x
k=PATH; printf -v "$k" x
builtin printf -v "$k" x
command printf -v "$k" x
p=printf; $p -v "$k" x
eval 'printf -v "$k" x'
f() { printf -v "$1" %s "$2"; }; f PATH .
for k in PATH; do printf -v "$k" .; done
a=(PATH); printf -v "${a[0]}" .
read k < names; read "$k" < names
set -- PATH; read "$1" <<< .
read -ra "$k" < names
mapfile -t "$k" < names
getopts x "$k"
wait -p "$k"
export "$k"
f() { export "$1"; }; f PATH=.
set -- PATH=.; export "$@"
declare "$k"
readonly "$(cat names)"
f() { local "$1"; }; f PATH=.
test -v "$k"
[ -v "$k" ]
[[ -v $k ]]
[ -R "$k" ]
""".strip().split("\n")
COMPUTING = r"""
f() { (( $1 )); }; f "$(cat names)"
f() { echo $(( $1 + 1 )); }; f "$(cat names)"
f() { echo $(( ${1} + 1 )); }; f "$(cat names)"
f() { [[ $1 -gt 0 ]]; }; f "$(cat names)"
f() { let "x=$1"; }; f "$(cat names)"
f() { echo ${x:$1:2}; }; f "$(cat names)"
set -- "$(cat names)"; echo ${x[$1]}
set -- "$(cat names)"; x[$1]=3
set -- "$(cat names)"; for ((i=$1;i<2;i++)); do ls; done
bash -c 'echo $(( $1 ))' _ "$(cat names)"
(( $* ))
(( $@ ))
""".strip().split("\n")
HARMLESS = r"""
read -r line < names
while read -r a b; do echo "$a"; done < names
read -p "$x" y
IFS=: read -ra parts < names
printf '%s' "$x"
printf -v out '%s' "$x"
export FOO="$x"
mapfile -t lines < <(ls)
[ -n "$x" ]
[[ -v FOO ]]
i=0; while (( i < 3 )); do i=$((i+1)); done
f() { echo $(( $# + 1 )) ${1:-x} ${1:0:3} "${@:2}"; }; f a
n=$#; echo $((n+1))
""".strip().split("\n")
RULED = msgspec.structs.replace(
    POLICY, allow=rules("shell(make)", "shell(read)", "shell(printf)", "shell(export)")
)


@pytest.mark.parametrize("script", [*SETTING, *COMPUTING])
def test_no_rule_covers_what_runs_beside_a_name_or_number_that_is_not_known(script: str) -> None:
    """The name may be PATH, and a number `a[$(command)]`; `make` was run as the script said."""
    assert decide_shell(f"{script}; make", RULED).verdict == "ask"


@pytest.mark.parametrize("script", [*SETTING, *COMPUTING])
def test_such_a_script_is_asked_about_where_a_rule_forbids_commands(script: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules("shell(touch)"))
    assert decide_shell(script, policy).verdict == "ask"


@pytest.mark.parametrize("script", HARMLESS)
def test_names_that_are_written_out_and_numbers_are_no_question(script: str) -> None:
    assert decide_shell(f"{script}; make", RULED).verdict == "allow"


def test_a_script_that_only_reads_is_still_tried_behind_the_fence() -> None:
    decision = decide_shell('read k < names; test -v "$k" && ls', POLICY)
    assert decision.verdict == "allow"
    assert decision.harmless


@pytest.mark.parametrize(
    ("script", "known"),
    [
        ('s=/opt/x; "$s/run"; touch "$(pwd)/a"', True),
        ('"$s"/run; touch "$(pwd)/a"', True),
        ('./"$s"; touch "$(pwd)/a"', True),
        ('$s/run; touch "$(pwd)/a"', False),
        ('"$s"; touch "$(pwd)/a"', False),
        ('"$@"/x; touch "$(pwd)/a"', False),
        ('"$(cat s)"/x; touch "$(pwd)/a"', False),
        ('"$s"{,/x}; touch "$(pwd)/a"', False),
        ('source /x; touch "$(pwd)/a"', False),
    ],
)
def test_a_program_named_by_a_path_changes_nothing_in_the_shell(script: str, known: bool) -> None:
    analysis = analyse(script, "/srv/project", "/home/someone")
    assert ("/srv/project/a" in analysis.touched) is known


@pytest.mark.parametrize(
    ("script", "usual"),
    [
        ('export NVM_DIR="$HOME/.nvm" && . "$NVM_DIR/nvm.sh" && npx tsc', True),
        ("NVM_DIR=~/.nvm; source $NVM_DIR/nvm.sh; npx tsc", True),
        ("CARGO_HOME=$HOME/.cargo cargo test", True),
        ('export NVM_DIR="$HOME/.nvm2" && . "$NVM_DIR/nvm.sh"', False),
        ('export NVM_DIR=. && . "$NVM_DIR/nvm.sh"', False),
        ("NVM_DIR=$HOME/.nvm; NVM_DIR=/srv/project; cargo test", False),
        ("CARGO_HOME=$x cargo test", False),
        ("CARGO_HOME=$PWD/.cargo cargo test", False),
    ],
)
def test_a_tool_may_be_told_of_the_place_where_it_is_anyway(script: str, usual: bool) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(@code)"))
    assert (decide_shell(script, policy).verdict == "allow") is usual


@pytest.mark.parametrize(
    "script",
    [
        "cat $d/etc/passwd; d=src; make",
        "cat < $d/etc/passwd; d=src; make",
        "cat $d/etc/passwd; export d=src; make",
        "false && d=src; cat $d/etc/passwd; make",
        "UID=1; d=src\ncat $d/etc/passwd; make",
        "x=$d/etc/passwd; d=src; cat $x; make",
        "[ -f y ] && d=src; x=$d/etc/passwd; cat $x; make",
    ],
)
def test_a_variable_that_may_be_empty_yet_leads_nowhere_beside_a_rule(script: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(make)"))
    assert decide_shell(script, policy).verdict == "ask"
    assert decide_shell("d=src; x=$d/y; cat $x; make", policy).verdict == "allow"


@pytest.mark.parametrize(
    "script",
    [
        "true || d=x; echo y > $d.git/config",
        "(d=x); echo y > ${d}.git/config",
        "d=x && true & echo y > $d.git/config",
        "echo y > $d.git/config; d=x",
    ],
)
def test_a_file_to_write_counts_with_and_without_a_value_that_is_not_certain(script: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("write"))
    assert decide_shell(script, policy).verdict == "ask"
    assert decide_shell("d=x; echo y > $d.git/config", policy).verdict == "allow"
    assert decide_shell("for d in a b; do echo y > $d.txt; done", policy).verdict == "allow"
