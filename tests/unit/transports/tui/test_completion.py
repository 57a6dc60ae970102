"""Completions: commands, arguments, and files with odd names."""

import pytest

from trimtab.attachments.attach import find_mentions
from trimtab.transports.tui.completion import CommandRow, Completer, mention
from trimtab.transports.tui.files import FileIndex, Paths


@pytest.fixture
def completer() -> Completer:
    files = FileIndex("/nowhere")
    files.set_paths(Paths(["my docs/", "my docs/first draft.txt", "plain.txt"]))
    return Completer(list, files)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("@plai", "@plain.txt "),
        ("see @first", '@"my docs/first draft.txt" '),
        ('see @"my docs/fi', '@"my docs/first draft.txt" '),
        ("(@plai", "@plain.txt "),
        ("@my", '@"my docs/'),
    ],
)
def test_a_file_is_completed_as_a_mention_that_attaches_it(
    completer: Completer, typed: str, completed: str
) -> None:
    completer.update(typed, busy=False)
    assert completer.chosen is not None
    assert completer.chosen.text == completed
    assert typed[-completer.chosen.replaced :].startswith("@")


@pytest.mark.parametrize("name", ["a b.txt", "it's.txt", "näive ünï.md", "a<b>.c", "x`y`.sh"])
def test_any_completed_name_is_found_as_a_mention(tmp_path: object, name: str) -> None:
    folder = str(tmp_path)
    with open(f"{folder}/{name}", "w", encoding="utf-8"):
        pass
    found = list(find_mentions(f"look at {mention(name)}now", folder))
    assert found == [(f"{folder}/{name}", None)]


def test_commands_are_found_by_their_other_names_and_long_usages_do_not_hide_the_help() -> None:
    rows = [
        CommandRow(name="ask", arguments="QUESTION", help="Ask.", aliases=("btw",)),
        CommandRow(name="queue", arguments="[list | edit N TEXT | move N TO | drop]", help="Show."),
        CommandRow(name="theme", find_values=lambda: ["dark", "light"]),
    ]
    completer = Completer(lambda: rows, FileIndex("/nowhere"))
    for typed, labels in (
        ("/bt", ["/ask QUESTION"]),
        ("/q", ["/queue …"]),
        ("/theme l", ["light"]),
        ("/", ["/ask QUESTION", "/queue …", "/theme"]),
    ):
        completer.update(typed, busy=False)
        assert [found.item.label for found in completer.found] == labels
