"""The arguments of a run, as people and scripts write them."""

import pytest

from trimtab.cli.parse import parse, parse_duration
from trimtab.contracts.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("20m", 1200), ("1h30m", 5400), ("1h1m1.5s", 3661.5), (" 2m ", 120)],
)
def test_a_duration_is_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "1d", "m", "-5", "30m1h", "1.5h", "five"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_duration(text)
    with pytest.raises(UsageError, match="--deadline cannot read"):
        parse(["-p", "go now", f"--deadline={text}"])


@pytest.mark.parametrize(
    "argv",
    [["-p", "fix it"], ["-pfix it"], ["--prompt", "fix it"], ["--prompt=fix it"], ["-p=fix it"]],
)
def test_a_value_follows_its_flag_or_an_equals_sign(argv: list[str]) -> None:
    assert parse(argv)["prompt"] == "fix it"


def test_a_flag_that_needs_a_value_does_not_take_the_next_flag_for_it() -> None:
    for argv in (["-p"], ["-p", "--autopilot"]):
        with pytest.raises(UsageError, match="-p needs a value"):
            parse(argv)
    assert parse(["-p", "--not-a-flag"])["prompt"] == "--not-a-flag"


def test_an_optional_value_is_taken_if_it_is_not_a_flag() -> None:
    assert parse(["--resume"])["resume"] is True
    assert parse(["--resume", "abc"])["resume"] == "abc"
    assert parse(["--resume=abc"])["resume"] == "abc"
    values = parse(["--resume", "-p", "go"])
    assert (values["resume"], values["prompt"]) == (True, "go")


def test_a_switch_takes_no_value() -> None:
    assert parse(["--autopilot"])["autopilot"] is True
    with pytest.raises(UsageError, match="--autopilot takes no value; write it without '=yes'"):
        parse(["--autopilot=yes"])


def test_lists_collect_and_other_flags_keep_the_last_value() -> None:
    values = parse(["--add-dir", "a", "--add-dir=b", "--model", "one", "--model", "two"])
    assert values["add_dir"] == ["a", "b"]
    assert values["model"] == "two"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--max-turns", "many"], "--max-turns needs a whole number, not 'many'"),
        (["--max-turns", "-1"], "--max-turns needs a whole number"),
        (["--max-budget-usd", "2,50"], "--max-budget-usd needs an amount"),
        (["--effort", "extreme"], "--effort cannot be 'extreme'; choose one of none, minimal, low"),
        (["--autoplot"], "Unknown option --autoplot; did you mean --autopilot"),
        (["--xyzzy=1"], "Unknown option --xyzzy; see trimtab --help."),
        (["status"], "Unexpected argument 'status'; give the prompt with -p 'status'."),
        (["fix the", "parser"], "put the whole prompt in quotes: 'fix the parser'"),
        (["-p", "fix", "parser"], "put the whole prompt in quotes: -p 'fix parser'"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(argv)
    assert said in str(caught.value)


def test_numbers_and_amounts_are_read() -> None:
    values = parse(["--max-turns", "12", "--max-budget-usd", "$2.50"])
    assert (values["max_turns"], values["max_budget_usd"]) == (12, 2.5)


def test_several_words_without_a_flag_are_the_prompt() -> None:
    assert parse(["fix the parser"])["words"] == "fix the parser"
