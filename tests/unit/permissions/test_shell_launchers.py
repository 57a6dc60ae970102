"""What a program that nobody described may start: rules that deny look at these names."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.shell.programs.launchers import find_named

FAR = ("-C", "a", "-C", "b", "-C", "c", "-C", "d", "-C", "e")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("frob",), []),
        (("frob", "rm", "x"), ["rm", "x"]),
        (("/opt/frob", "rm", "x"), ["rm", "x"]),
        (("frob", "--with=rm", "a b", "/bin/rm"), ["--with=rm", "rm", "a", "rm"]),
        (("frob", "ls; rm x"), ["ls", "rm"]),
        (("frob", "'r\"\"m' x"), ["r", "m", "x", "rm"]),
        (("frob", "--run=sudo rm x"), ["--run=sudo", "sudo", "rm"]),
        (("frob", "git", "push", "x"), ["git push", "push", "x"]),
    ],
)
def test_every_word_of_an_unknown_program_may_begin_a_command(
    words: tuple[str, ...], names: list[str]
) -> None:
    assert [name.base for name in find_named(words)] == names


@pytest.mark.parametrize("program", ["cat", "git", "find", "bash", "sudo", "eval", "/bin/cat"])
def test_a_program_that_is_described_starts_nothing_by_its_other_words(program: str) -> None:
    assert list(find_named((program, "rm", "x"))) == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("dotnet", "rm", "make", "x"), ["make", "x"]),
        (("dotnet",), []),
    ],
)
def test_the_first_word_of_some_programs_is_their_own(
    words: tuple[str, ...], names: list[str]
) -> None:
    assert [name.base for name in find_named(words)] == names


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("docker", "rm", "x"), []),
        (("docker", "ps", "rm", "x"), []),
        (("docker", "run", "image", "rm", "x"), ["image", "rm", "x"]),
        (("docker", "exec", "box", "rm x"), ["box", "rm", "x"]),
        (("docker", "exec", "run", "x"), ["run", "x"]),
        (("kubectl", "debug", "pod", "rm"), ["pod", "rm"]),
        (("ssh", "host", "rm", "x"), ["host", "rm", "x"]),
        (("ssh", "host", "ls; rm x"), ["host", "ls", "rm", "x"]),
        (("limactl", "shell", "vm", "rm"), ["vm", "rm"]),
        (("limactl", "rm"), ["rm"]),
        (("ssh",), []),
    ],
)
def test_words_for_elsewhere_are_read_from_the_one_that_leads_there(
    words: tuple[str, ...], names: list[str]
) -> None:
    assert [name.base for name in find_named(words)] == names


def test_a_command_is_named_by_twelve_words_at_most() -> None:
    assert next(find_named(("frob", "git", *FAR, "push"))).base == "git push"
    assert next(find_named(("frob", "git", *FAR, "-P", "push"))).base == "git"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("rtk git status", "allow"),
        ("rtk ls -la src", "allow"),
        ("rtk git commit -m x", "allow"),
        ("rtk read a.txt", "allow"),
        ("rtk git push", "ask"),
        ("rtk git push --force", "ask"),
        ("rtk grep x /home/someone/.ssh", "ask"),
        ("rtk curl https://evil.example", "ask"),
        ("./rtk git status", "ask"),
        ("rtk $x y", "ask"),
        ("rtk proxy rm x", "deny"),
        ("rtk test 'rm x'", "deny"),
        ("rtk find . -exec rm {} +", "deny"),
    ],
)
def test_what_shortens_the_output_of_a_program_is_judged_by_the_program(
    command: str, verdict: str
) -> None:
    allow, deny = rules("shell(rtk)", "shell(@git)"), rules("shell(rm)")
    policy = msgspec.structs.replace(POLICY, allow=allow, deny=deny)
    assert decide_shell(command, policy).verdict == verdict
