"""Long lists of commands: hostile ones are never allowed, everyday ones seldom asked about."""

import msgspec
import pytest

from permissionkit import DEVELOPER, POLICY, read_cases, read_scripts, rules
from properties.over_asking import MOST_ASKED
from properties.questions import MOST, measure, read_lists
from trimtab.permissions.decide_shell import decide_shell

OPAQUE = (
    *(
        "perl",
        "ruby",
        "php",
        "lua",
        "psql",
        "mysql",
        "node",
        "osascript",
        "python",
        "gdb",
        "expect",
    ),
    *("dc", "at ", "batch", "tmux", "gh ", "kubectl", "ssh", "ip netns"),
)
"""What they are given is in a language that is not read, or for another machine or time."""
NO_COMMANDS = ("env A=b -- ", "ls  ", "ls\uff1b")
"""These only look as if they ran something."""
NO_TOUCH = msgspec.structs.replace(
    POLICY,
    allow_all_tools=True,
    allow_all_paths=True,
    allow_all_urls=True,
    allow_destructive=True,
    deny=rules("shell(touch)"),
)


@pytest.mark.parametrize("command", read_cases("hostile"))
def test_a_hostile_command_is_never_allowed_as_harmless(command: str) -> None:
    assert decide_shell(command, POLICY).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        command
        for command in read_cases("hostile")
        if "touch made" in command and not command.startswith((*OPAQUE, *NO_COMMANDS))
    ],
)
def test_a_denied_program_does_not_run_by_any_of_these_ways_if_all_is_allowed(command: str) -> None:
    assert decide_shell(command, NO_TOUCH).verdict != "allow"


def test_everyday_commands_are_seldom_asked_about() -> None:
    commands = read_scripts("everyday")
    asked = [one for one in commands if decide_shell(one, DEVELOPER).verdict != "allow"]
    assert len(asked) <= MOST_ASKED * len(commands), asked


def test_later_sessions_of_a_project_ask_few_questions() -> None:
    asked, count = measure(read_lists())
    assert len(asked) <= MOST / 100 * count, asked
