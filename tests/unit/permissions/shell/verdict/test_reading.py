"""Calls that only read, and calls that seem to."""

from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.shell.verdict.analyse import analyse


@pytest.mark.parametrize(
    "command",
    [
        "frob --version",
        "frob -V",
        "frob version",
        "frob --help",
        "gh pr create --help",
        "cargo build --help",
        "go list -m all",
        "go env GOPATH",
        "cargo tree",
        "cargo metadata --format-version 1",
        "terraform fmt -check",
        "identify a.png",
        "bat a.txt",
        "bat $x",
        "dust -d 1",
        "man 5 passwd | head",
        "difft a b",
        'sed -n "${a},${b}p" f',
        'for f in *.h; do sed "s|^|$(basename $f): |" $f; done',
        "sed p *",
        'awk "NR >= $a" f',
        "/usr/bin/grep x a",
        "/opt/tool/bin/frob --version",
        "/usr/bin/python3 --version",
        "frob --version 2>/dev/null || echo none",
    ],
)
def test_a_call_that_should_only_show_something_is_tried_and_no_more(command: str) -> None:
    analysis = analyse(command, POLICY.cwd, POLICY.home)
    assert analysis.seems_read_only
    assert not analysis.read_only
    decision = decide_shell(command, POLICY)
    assert decision.verdict == "allow"
    assert decision.harmless
    assert decision.plain is None  # without a fence it is asked about
    assert decision.reason == "It seems to only read, inside the workspace."
    beside = decide_shell(
        f"make && {command}", msgspec.structs.replace(POLICY, allow=rules("shell(make)"))
    )
    assert beside.verdict == "ask"  # a line that runs outside the fence


@pytest.mark.parametrize(
    "command",
    [
        "frob -v",
        "frob -h",
        "frob --version --now",
        "frob $x --version",
        "frob --version *",
        "./frob --version",
        "/tmp/frob --version",
        "/srv/project/ls",
        "make help",
        "make --help x",
        "yarn version",
        "rake --version x",
        "go run ./cmd --help",
        "go env -w A=b",
        "docker run image --help",
        "cargo run -- --help",
        "npm exec frob --help",
        "python x.py --help",
        "cargo publish",
        "terraform apply",
        "/usr/bin/sort -o x a",
        "/usr/bin/rm a",
        'sed "$script" f',
        'awk "$program" f',
        "man -P ./pager ls",
        "ip -batch f",
        "ip -br addr add 10.0.0.1 dev lo",
        'sed "s/a/$x/w made" f',
        'sed -i "s/a/$x/" f',
        'sed "s/a/$x/" f > g',
    ],
)
def test_a_call_that_may_run_code_or_change_something_is_asked_about(command: str) -> None:
    assert decide_shell(command, POLICY).verdict == "ask"


def test_a_rule_for_a_call_that_was_only_tried_lets_it_run_beside_others() -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(make)", "shell(go list)"))
    assert decide_shell("make && go list ./...", policy).verdict == "allow"
    assert decide_shell("make && go env GOPATH", policy).verdict == "ask"


@pytest.mark.parametrize(
    ("command", "hazardous"),
    [
        ("git -c user.name='A B' -c user.email=a@b.example commit -m x", False),
        ("git -c core.editor=true merge --continue", False),
        ("git -c core.hooksPath=/dev/null commit -m x", False),
        ("git -c user.name=A -c core.hooksPath=hooks commit -m x", True),
        ("git -c core.editor=frob commit", True),
        ('git -c user.name="$x" commit -m x', True),
        ("git config user.name Me", False),
        ("git config --global user.email me@example.com", False),
        ("git config pull.rebase true", False),
        ("git config USER.NAME Me", False),
        ("git config core.hooksPath hooks", True),
        ("git config alias.x '!frob'", True),
        ("git config core.fsmonitor frob", True),
        ("git config core.pager frob", True),
        ("git config user.name Me extra", True),
        ("git config --file x user.name Me", True),
        ("git config user.name $x", True),
        ("git config $x Me", True),
    ],
)
def test_settings_of_git_that_start_nothing_need_only_a_rule(command: str, hazardous: bool) -> None:
    assert bool(analyse(command, POLICY.cwd, POLICY.home).hazards) is hazardous
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(@git)"))
    assert (decide_shell(command, policy).verdict == "ask") is hazardous


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("cat /etc/os-release /proc/cpuinfo", "allow"),
        ("ls /usr/include; grep -r x /usr/share/doc", "allow"),
        ("cat /etc/passwd", "ask"),
        ("cat /usr/share/../../etc/passwd", "ask"),
        ("cat /proc/1/environ", "ask"),
        ("cat /usr/local/etc/x", "ask"),
        ("cat /usr", "ask"),
    ],
)
def test_public_parts_of_the_system_are_read_without_a_question(command: str, verdict: str) -> None:
    assert decide_shell(command, POLICY).verdict == verdict


@pytest.mark.parametrize(
    ("command", "strays"),
    [
        ("grep --dere x .", True),
        ("grep --devices=skip x a", False),
        ("diff --rec a b", True),
        ("diff a.txt b.txt", False),
        ("diff a.txt .", True),
        ("diff --to-file=. a.txt", True),
        ("yq -n 'load_str(\"x\")'", True),
        ("yq eval .a a.yml", False),
        ("jq -nf program", True),
        ("jq -r .a a.json", False),
        ("xmllint --valid a.xml", True),
        ("objdump -S a", True),
        ("sha256sum -c sums", True),
        ("file -f names", True),
    ],
)
def test_files_that_others_name_are_not_known(command: str, strays: bool, tmp_path: Path) -> None:
    analysis = analyse(command, str(tmp_path), "/home/me")
    assert bool(analysis.strays) is strays


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("tar tf host:x.tar", True),
        ("tar tf -oProxyCommand=x:y", True),
        ("tar --fil=host:x -t", True),
        ("tar tf ./a:b.tar", False),
        ("tar tf a.tar --exclude=a:b", False),
        ("ps eww", True),
        ("ps aux e", True),
        ("ps aux", False),
        ("ps -eo pid,etime,user", False),
    ],
)
def test_archives_of_other_machines_and_environments_of_others_are_asked_about(
    command: str, runs: bool
) -> None:
    assert bool(analyse(command, "/srv", "/home/me").hazards) is runs
