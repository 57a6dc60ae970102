"""The sentences a person reads when the arguments of a subcommand are wrong."""

import pytest

from trimtab.cli.command_parser import CommandParser
from trimtab.cli.command_table import COMMANDS, GROUPS, build_parser
from trimtab.contracts.errors import UsageError

WRONG = [
    ("undo --pormpt 3", "Unknown option --pormpt; did you mean --prompt?"),
    ("undo --frobnicate", "Unknown option --frobnicate; see `trimtab undo --help`."),
    ("undo --prompt x", "--prompt needs a number from 1, not 'x'."),
    ("undo --prompt", "--prompt needs a value; see `trimtab undo --help`."),
    ("undo --json=1", "--json takes no value; write --json alone."),
    ("undo --prev", "Unknown option --prev; did you mean --preview?"),
    ("undo a b", "Unexpected argument 'b'; see `trimtab undo --help`."),
    ("undo -- a b", "Unexpected argument 'b'; see `trimtab undo --help`."),
    ("hooks lst", "`trimtab hooks` has no action 'lst'; did you mean `trimtab hooks list`?"),
    ("prompt", "`trimtab prompt` needs an action; use show or diff."),
    ("blame", "PATH is missing; see `trimtab blame --help`."),
    ("mcp add x", "COMMAND|URL is missing; see `trimtab mcp add --help`."),
    ("mcp get --jsn x", "Unknown option --jsn; did you mean --json?"),
    ("sessions export x --format pdf", "--format cannot be 'pdf'; choose md, html, json or otel."),
    (
        "sessions show x --all --events",
        "--events and --all cannot be used together; leave one out.",
    ),
    ("agents -C /proc/nowhere", "no such directory: /proc/nowhere; name an existing one with -C."),
]


@pytest.mark.parametrize(("line", "sentence"), WRONG)
def test_wrong_arguments_raise_one_sentence(line: str, sentence: str) -> None:
    name, *argv = line.split()
    with pytest.raises(UsageError) as raised:
        build_parser(name).parse(argv)
    assert raised.value.message == sentence


def test_a_shared_option_counts_before_and_after_the_action() -> None:
    for argv in (["--json", "get", "x"], ["get", "x", "--json"]):
        assert build_parser("mcp").parse(argv).json is True
    assert build_parser("mcp").parse(["get", "x"]).json is False


def test_the_default_action_needs_no_word() -> None:
    args = build_parser("models").parse(["--refresh"])
    assert (args.action, args.refresh) == ("list", True)


def test_a_program_keeps_every_word_after_the_dashes() -> None:
    argv = ["add", "x", "--env", "A=b", "--", "npx", "-y", "tool", "--", "--json"]
    args = build_parser("mcp").parse(argv)
    assert (args.target, args.args, args.env) == ("npx", ["-y", "tool", "--", "--json"], ["A=b"])
    assert args.json is False


def test_options_may_stand_before_and_after_an_address() -> None:
    for argv in (
        ["add", "x", "--transport", "sse", "http://localhost"],
        ["add", "x", "http://localhost", "--transport", "sse"],
    ):
        args = build_parser("mcp").parse(argv)
        assert (args.target, args.args, args.transport) == ("http://localhost", [], "sse")


def test_flags_of_a_run_pass_through_the_demo() -> None:
    args = build_parser("demo").parse(["--scripted", "--output-format", "json", "--keep"])
    assert args.unknown == ["--output-format", "json"]


def test_every_command_has_a_group_and_options_with_help() -> None:
    assert [name for _, rows in GROUPS for name, _ in rows] == list(COMMANDS)

    def check(parser: CommandParser) -> None:
        assert "None" not in parser.format_help()
        for child in parser.actions.values():
            check(child)

    for name in COMMANDS:
        check(build_parser(name))
