"""`trimtab help`: commands and flags, from the tables they are parsed by."""

import textwrap
from importlib import import_module

from trimtab.cli.flags import FLAGS, Flag
from trimtab.cli.main import COMMANDS

HELP = "show this help"

INTRO = """\
Usage: trimtab [flags]             a conversation in the terminal, or the prompt on stdin
       trimtab -p TEXT [flags]     one prompt, one answer
       trimtab COMMAND [...]       see below; `trimtab COMMAND --help` for more
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
    print(render())
    return 0


def render() -> str:
    """The whole help text."""
    lines = [INTRO, "Commands:"]
    for name, module in COMMANDS.items():
        summary = import_module(f"trimtab.cli.commands.{module}").HELP
        lines.append(f"  {name:<14} {summary}")
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
