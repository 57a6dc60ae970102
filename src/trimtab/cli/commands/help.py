"""`trimtab help`: commands and flags, from the tables they are parsed by."""

import textwrap

from trimtab.cli.command_table import COMMANDS, load_command, run_command
from trimtab.cli.flags import FLAGS, Flag
from trimtab.contracts.errors import UsageError

HELP = "show this help, or that of a command"
USAGE = "Usage: trimtab help [COMMAND]"

INTRO = """\
Usage: trimtab [flags]             a conversation in the terminal, or the prompt on stdin
       trimtab "TEXT" [flags]      the same, beginning with the prompt TEXT
       trimtab -p TEXT [flags]     one prompt, one answer
       trimtab COMMAND [...]       see below; `trimtab help COMMAND` for more
"""

GROUPS = (
    "prompt",
    "model",
    "mode",
    "limits",
    "session",
    "permission",
    "customization",
    "output",
    "server",
)

EXIT_CODES = """\
Exit codes: 0 done, 1 error, 2 usage or configuration, 3 blocked or incomplete, 4 permission
denied, 5 budget reached, 6 turn or time limit, 7 authentication, 8 model or service,
130/143 ended by a signal, 141 nobody reads the output."""


def run(argv: list[str]) -> int:
    if len(argv) > 1:
        raise UsageError(f"`trimtab help` takes one command; leave out {argv[1]!r}.")
    if not argv:
        print(render())
        return 0
    if argv[0] not in COMMANDS:
        raise UsageError(f"There is no command {argv[0]!r}; see `trimtab help`.")
    return run_command(argv[0], ["--help"])


def render() -> str:
    """The whole help text."""
    lines = [INTRO, "Commands:"]
    lines += [f"  {name:<14} {load_command(name).HELP}" for name in sorted(COMMANDS)]
    for group in GROUPS:
        lines += ["", f"{group.capitalize()}:"]
        lines += [row for flag in FLAGS if shown(flag, group) for row in describe(flag)]
    return "\n".join([*lines, "", EXIT_CODES])


def shown(flag: Flag, group: str) -> bool:
    return flag.group == group and not flag.hidden


def usage_of(flag: Flag) -> str:
    """The flag as it is written, with its value."""
    names = ", ".join(flag.names)
    value = "|".join(flag.choices) if flag.choices else flag.metavar
    if flag.kind == "optional":
        return f"{names}[={value}]"
    return f"{names} {value}".rstrip()


def describe(flag: Flag) -> list[str]:
    usage = usage_of(flag)
    text = textwrap.wrap(flag.help, 62)
    if len(usage) > 30:
        return [f"  {usage}", *(f"{'':<34}{row}" for row in text)]
    return [f"  {usage:<32}{text[0]}", *(f"{'':<34}{row}" for row in text[1:])]
