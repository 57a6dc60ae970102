"""Assessors of programs that embed sessions: what they may add, and what they cannot lift."""

import msgspec
import pytest

from permissionkit import DEVELOPER, POLICY, rules
from trimtab.contracts.assessment import AssessedCommand, Assessment, one_command
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide import decide
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.effects import may_change

HARMLESS = AssessedCommand(identifier="Get-ChildItem", read_only=True)


def listing(script: str, interpreter: str, identifier: str) -> Assessment:
    """Takes everything for a harmless command, as no assessor should."""
    command = AssessedCommand(identifier=identifier, read_only=True)
    return Assessment(commands=(command,), can_offer_session_approval=True)


def failing(script: str, interpreter: str, identifier: str) -> Assessment:
    raise OSError("no grammar")


def silent(script: str, interpreter: str, identifier: str) -> Assessment:
    return Assessment(commands=())


def using(assess: object, policy: Policy = POLICY) -> Policy:
    return msgspec.structs.replace(policy, assess=assess)


@pytest.mark.proves("PERM-17")
def test_an_assessor_is_given_script_interpreter_and_identifier() -> None:
    calls = []

    def note(*given: str) -> Assessment:
        calls.append(given)
        return Assessment(commands=(HARMLESS,))

    policy = using(note)
    decide(Access(kind="shell", target="Get-ChildItem -Force", interpreter="powershell"), policy)
    decide(Access(kind="shell", target="ls -la"), policy)
    assert calls == [
        ("Get-ChildItem -Force", "powershell", "Get-ChildItem"),
        ("ls -la", "bash", "ls"),
    ]


@pytest.mark.proves("PERM-17")
def test_the_simple_assessor_reports_one_command_that_may_do_anything() -> None:
    said = one_command("whatever > x", "powershell", "whatever")
    assert said == Assessment(
        commands=(AssessedCommand(identifier="whatever", read_only=False),),
        possible_paths=(),
        possible_urls=(),
        has_write_file_redirection=False,
        can_offer_session_approval=False,
    )


@pytest.mark.parametrize("interpreter", ["powershell", "pwsh", "python", "cmd", "nu"])
def test_without_a_grammar_no_rule_allows_anything(interpreter: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell"))
    for script in ("ls", "Get-ChildItem", "print", ""):
        assert decide_shell(script, policy, interpreter).verdict == "ask"
        assert read_script(script, policy, interpreter).can_be_offered is False


def test_an_assessor_describes_a_language_that_is_not_read_here() -> None:
    policy = using(listing)
    assert decide_shell("Get-ChildItem", policy, "powershell").verdict == "allow"
    denied = msgspec.structs.replace(policy, deny=rules("shell(Get-ChildItem)"))
    assert decide_shell("Get-ChildItem", denied, "powershell").verdict == "deny"
    asked = using(one_command)
    assert decide_shell("Get-ChildItem", asked, "powershell").verdict == "ask"
    allowed = msgspec.structs.replace(asked, allow=rules("shell(Get-ChildItem)"))
    assert decide_shell("Get-ChildItem", allowed, "powershell").verdict == "allow"


def test_rules_that_deny_hold_by_our_own_reading_whatever_an_assessor_says() -> None:
    policy = msgspec.structs.replace(using(listing, DEVELOPER), deny=rules("shell(git push)"))
    assert decide_shell("ls; git push", policy).verdict == "deny"
    assert decide_shell("$x push", policy).verdict == "ask"
    assert decide_shell("touch x", using(listing)).verdict == "ask"
    assert may_change(Access(kind="shell", target="touch x"), using(listing))


def test_an_assessor_makes_a_decision_stricter() -> None:
    assert decide_shell("ls", POLICY).verdict == "allow"
    assert decide_shell("ls", using(one_command)).verdict == "ask"
    assert may_change(Access(kind="shell", target="ls"), using(one_command))
    found = read_script("npm test", using(one_command))
    assert found.describe()["canOfferSessionApproval"] is False
    assert read_script("npm test", POLICY).describe()["canOfferSessionApproval"] is True


@pytest.mark.parametrize("command", ["'./a*b' x", "./a,b", "'./a;b'", r"./it\'s", "@git x", "a:b"])
def test_no_rule_is_offered_for_a_program_that_no_rule_can_name(command: str) -> None:
    assert not read_script(command, POLICY).can_be_offered


def test_paths_and_addresses_that_an_assessor_names_are_judged() -> None:
    def far(script: str, interpreter: str, identifier: str) -> Assessment:
        command = AssessedCommand(identifier=identifier, read_only=True)
        return Assessment(
            commands=(command,),
            possible_paths=("/etc/passwd",),
            possible_urls=("https://bad.test/x",),
            has_write_file_redirection=script.endswith("!"),
        )

    policy = using(far)
    assert "/etc/passwd" in decide_shell("Get-Secret", policy, "pwsh").reason
    denying = msgspec.structs.replace(policy, deny=rules("url(bad.test)"))
    assert decide_shell("Get-Secret", denying, "pwsh").verdict == "deny"
    generous = msgspec.structs.replace(policy, roots=("/",), allow=rules("shell"))
    assert decide_shell("Get-Secret", generous, "pwsh").verdict == "allow"
    assert "not known" in decide_shell("Get-Secret!", generous, "pwsh").reason


@pytest.mark.parametrize("assess", [failing, silent])
@pytest.mark.parametrize("interpreter", ["bash", "powershell"])
def test_an_assessor_that_fails_allows_nothing(assess: object, interpreter: str) -> None:
    policy = using(assess, msgspec.structs.replace(POLICY, allow=rules("shell")))
    decision = decide_shell("ls", policy, interpreter)
    assert (decision.verdict, "the assessor" in decision.reason) == ("ask", True)


@pytest.mark.parametrize("read_only", [True, False])
def test_paths_that_an_assessor_names_are_read_or_changed_as_its_commands_are(
    read_only: bool,
) -> None:
    def near(script: str, interpreter: str, identifier: str) -> Assessment:
        command = AssessedCommand(identifier="Do-It now", read_only=read_only)
        return Assessment(commands=(command,), possible_paths=("a", "/b"))

    found = read_script("Do-It", using(near), "pwsh")
    paths = [f"{POLICY.cwd}/a", "/b"]
    assert found.reads == (paths if read_only else [])
    assert found.touched == ([] if read_only else paths)
    assert found.possible_paths == ["a", "/b"]
    (command,) = found.commands
    assert (command.base, command.words) == ("Do-It now", ("Do-It", "now"))


def test_an_assessor_that_calls_a_command_changing_makes_it_so() -> None:
    def strict(script: str, interpreter: str, identifier: str) -> Assessment:
        return Assessment(
            commands=(
                AssessedCommand(identifier="cat", read_only=False),
                AssessedCommand(identifier="ls", read_only=True),
            ),
            has_write_file_redirection=True,
        )

    found = read_script("cat a; ls > out", using(strict))
    assert [(each.identifier, each.read_only) for each in found.commands] == [
        ("cat", False),
        ("ls", True),
    ]
    assert found.targets == [f"{POLICY.cwd}/out"]
    assert read_script("cat a; ls", using(strict)).targets == [None]
