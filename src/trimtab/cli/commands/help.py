"""`trimtab help`: commands and flags, from the tables that parse them."""

import textwrap

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.command_table import COMMANDS, GROUPS, build_parser, describe_unknown
from trimtab.cli.flags import FLAGS, Flag
from trimtab.contracts.errors import UsageError

INTRO = """\
Usage: trimtab [flags]             a conversation in the terminal, or the prompt on stdin
       trimtab "TEXT" [flags]      the same, beginning with the prompt TEXT
       trimtab -p TEXT [flags]     one prompt, one answer
       trimtab COMMAND [...]       see below; `trimtab help COMMAND` for more
"""

FLAG_GROUPS = (
    "prompt",
    "session",
    "model",
    "mode",
    "fleet",
    "limit",
    "permission",
    "customization",
    "output",
    "server",
)

EXIT_CODES = """\
Exit codes: 0 done, 1 error, 2 usage or configuration, 3 blocked or incomplete, 4 permission
denied, 5 budget reached, 6 turn or time limit, 7 authentication, 8 model or service,
130/143 ended by a signal, 141 nobody reads the output."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="a command, and an action of it"
    )


def run(args: Arguments) -> int:
    if not args.words:
        print(render())
        return 0
    name, *actions = args.words
    if name not in COMMANDS:
        raise UsageError(describe_unknown([name]))
    parser = build_parser(name)
    for action in actions:
        if action not in parser.actions:
            raise UsageError(f"`{parser.prog}` has no action {action!r}; see `{parser.prog} -h`.")
        parser = parser.actions[action]
    parser.print_help()
    return 0


def render() -> str:
    """Return the whole help text."""
    lines = [INTRO]
    for title, rows in GROUPS:
        lines += [f"{title}:", *(f"  {name:<16}{summary}" for name, summary in rows), ""]
    for group in FLAG_GROUPS:
        lines.append(f"{group.capitalize()} flags:")
        lines += [row for flag in FLAGS if is_shown(flag, group) for row in describe(flag)]
        lines.append("")
    return "\n".join([*lines, EXIT_CODES])


def is_shown(flag: Flag, group: str) -> bool:
    return flag.group == group and not flag.hidden


def usage_of(flag: Flag) -> str:
    """Return the flag as a person writes it, with its value."""
    names = ", ".join(flag.names)
    value = "|".join(flag.choices) if flag.choices else flag.metavar
    if flag.kind == "optional":
        return f"{names}[={value}]"
    return f"{names} {value}".rstrip()


def describe(flag: Flag) -> list[str]:
    """Return the lines about a flag: usage on the left, explanation on the right."""
    usage = usage_of(flag)
    text = textwrap.wrap(flag.help, 62)
    if len(usage) > 30:
        return [f"  {usage}", *(f"{'':<34}{row}" for row in text)]
    return [f"  {usage:<32}{text[0]}", *(f"{'':<34}{row}" for row in text[1:])]
