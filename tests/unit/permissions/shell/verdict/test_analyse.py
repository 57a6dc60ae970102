"""What is said of commands that cannot be read whole, or are for another shell."""

from time import process_time

import pytest

from trimtab.permissions.shell.verdict.analyse import LONGEST, STEPS, analyse


@pytest.mark.parametrize("shell", ["powershell", "pwsh", "PowerShell", "ps1", "cmd"])
def test_of_powershell_only_the_first_word_is_known(shell: str) -> None:
    found = analyse("Get-Item  a; Remove-Item b", "/srv", shell=shell)
    assert found.problem == "it is for PowerShell, which is not analysed"
    (command,) = found.commands
    assert (command.identifier, command.base) == ("Get-Item", "get-item")
    assert not command.read_only
    assert analyse(" ", "/srv", shell=shell).commands == []


def test_a_text_that_is_too_long_is_skimmed() -> None:
    whole = analyse("#" * (LONGEST - 4) + "\nrm x"[:4], "/srv")
    assert whole.problem is None
    found = analyse("ls #" + "a" * LONGEST + "\nrm x", "/srv")
    assert found.problem == "it is too long"
    assert [(command.base, command.shadow) for command in found.commands] == [
        ("ls", False),
        ("ls", True),
        ("rm", True),
    ]


def test_a_text_that_takes_too_long_is_skimmed() -> None:
    found = analyse("ls;" * STEPS + "rm x", "/srv")
    assert found.problem == "it takes too long to read"
    assert found.commands[-1].base == "rm"


def test_a_text_that_is_nested_too_deeply_is_skimmed() -> None:
    found = analyse("$(" * 70 + "rm x" + ")" * 70, "/srv")
    assert found.problem == "it is nested too deeply"
    assert [command.base for command in found.commands] == ["rm"]


def test_a_text_that_is_only_wrong_is_not_skimmed() -> None:
    found = analyse("ls; fi; rm x", "/srv")
    assert found.problem == "'f' is unexpected"
    assert [command.base for command in found.commands] == ["ls"]


def test_a_doubt_about_the_shell_does_not_replace_a_problem() -> None:
    assert analyse("ls", "/srv", shell="sh").problem is None
    assert analyse("ls {a,b}", "/srv").problem is None
    doubt = "sh may read some of it in its own way"
    assert analyse("ls {a,b}", "/srv", shell="sh").problem == doubt
    assert analyse("ls {a,b}; fi", "/srv", shell="sh").problem == "'f' is unexpected"


@pytest.mark.parametrize("unit", ["a", "a.", "http://a", "a:", "1."])
def test_a_long_word_is_read_in_time_that_grows_with_its_length_only(unit: str) -> None:
    """A pattern took minutes for the first two, in which no deadline and no signal was heard."""
    word = (unit * LONGEST)[: LONGEST - 10]
    began = process_time()
    found = analyse(f"echo {word}", "/srv")
    assert process_time() - began < 10
    assert [command.base for command in found.commands] == ["echo"]
