"""The argument parser of subcommands: argparse, with our sentences for its errors.

It is imported when a subcommand runs. The flags of a run are parsed by `cli/parse.py`, because
importing argparse would delay every start.
"""

import argparse
import difflib
import os
from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.contracts.errors import UsageError

Arguments = argparse.Namespace
HIDDEN = argparse.SUPPRESS


class CommandParser(argparse.ArgumentParser):
    """Parses the arguments of one subcommand. Raises `UsageError` for wrong ones.

    With `passes_unknown`, arguments it does not know are collected in `unknown` instead.
    """

    def __init__(self, *, prog: str, passes_unknown: bool = False, **options: Any) -> None:
        super().__init__(
            prog=prog,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            formatter_class=_Formatter,
            **options,
        )
        self._passes_unknown = passes_unknown
        self._positionals.title = "Arguments"
        self._optionals.title = "Options"
        self.add_argument("-h", "--help", action="help", help="show this help")
        self.actions: dict[str, CommandParser] = {}

    def add_actions(self, *, default: str | None = None, dest: str = "action") -> "Actions":
        """Let the first argument name an action, such as `list`; `default` is used without one."""
        added = self.add_subparsers(
            dest=dest,
            metavar="[ACTION]" if default else "ACTION",
            title="Actions",
            description=f"The default is {default}." if default else None,
            required=default is None,
        )
        self.set_defaults(**{dest: default})
        return Actions(self, added)

    def add_json(self) -> None:
        # Without a default, an action's parser would overwrite what stands before the action.
        self.add_argument(
            "--json", action="store_true", default=HIDDEN, help="print one JSON document"
        )

    def add_folder(self) -> None:
        self.add_argument(
            "-C",
            "--cwd",
            type=existing_folder,
            default=HIDDEN,
            metavar="DIR",
            help="the folder to look at instead of the current one",
        )

    def parse(self, argv: Sequence[str], **defaults: Any) -> Arguments:
        """Parse the arguments of the whole command.

        Words after `--` and the word that follows it are appended to `args`, for commands that
        start a program. argparse is not given them: it drops a second `--`, which is the
        program's.
        """
        end = argv.index("--") + 2 if "--" in argv else len(argv)
        parsed = self.parse_args(argv[:end], Arguments(json=False, cwd=None, **defaults))
        if argv[end:]:
            if not hasattr(parsed, "args"):
                raise UsageError(self._describe_unknown(argv[end]))
            parsed.args = [*parsed.args, *argv[end:]]
        return parsed

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and raise for leftovers here: only this parser knows the options near to them."""
        try:
            parsed, rest = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            raise UsageError(self._describe(error)) from None
        if self._passes_unknown:
            parsed.unknown = rest
        elif rest:
            raise UsageError(self._describe_unknown(rest[0]))
        return parsed, []

    def error(self, message: str) -> Any:
        """Raise for what argparse finds after all arguments are read: one that is missing."""
        _, _, missing = message.partition("are required: ")
        if missing == "ACTION":
            raise UsageError(f"`{self.prog}` needs an action; use {_list(self.actions)}.")
        if missing:
            verb = "are" if "," in missing else "is"
            raise UsageError(f"{missing} {verb} missing; see `{self.prog} --help`.")
        raise UsageError(f"{message}; see `{self.prog} --help`.")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        near = difflib.get_close_matches(str(value), choices, 1)
        if action.nargs == argparse.PARSER:
            advice = f"did you mean `{self.prog} {near[0]}`?" if near else f"use {_list(choices)}."
            raise UsageError(f"`{self.prog}` has no action {value!r}; {advice}")
        advice = f"did you mean {near[0]}?" if near else f"choose {_list(choices)}."
        raise UsageError(f"{_name(action)} cannot be {value!r}; {advice}")

    def _describe(self, error: argparse.ArgumentError) -> str:
        name = (error.argument_name or "").partition("/")[0]
        if error.message.startswith("expected"):
            return f"{name} needs a value; see `{self.prog} --help`."
        if error.message.startswith("ignored explicit argument"):
            return f"{name} takes no value; write {name} alone."
        _, _, other = error.message.partition("not allowed with argument ")
        if other:
            return f"{name} and {other} cannot be used together; leave one out."
        return f"{name} {error.message}"

    def _describe_unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"Unexpected argument {word!r}; see `{self.prog} --help`."
        option = word.partition("=")[0]
        known = [name for action in self._actions for name in _shown_options(action)]
        near = difflib.get_close_matches(option, known, 1)
        advice = f"did you mean {near[0]}?" if near else f"see `{self.prog} --help`."
        return f"Unknown option {option}; {advice}"


class Actions:
    """Adds the parsers of a command's actions."""

    def __init__(self, parser: CommandParser, added: Any) -> None:
        self._parser = parser
        self._added = added

    def add(self, name: str, summary: str) -> CommandParser:
        description = f"{summary[0].upper()}{summary[1:]}."
        parser: CommandParser = self._added.add_parser(
            name, prog=f"{self._parser.prog} {name}", help=summary, description=description
        )
        self._parser.actions[name] = parser
        return parser


class _Formatter(argparse.HelpFormatter):
    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


def positive(text: str) -> int:
    """Return a number that counts from 1. For `type`."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a number from 1, not {text!r}.")
    return int(text)


def port_number(text: str) -> int:
    """Return a port, 0 for any free one. For `type`."""
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"needs a port from 0 to 65535, not {text!r}.")
    return int(text)


def existing_folder(text: str) -> str:
    """Return the absolute path of a folder. For `type`."""
    folder = os.path.abspath(text)
    if not os.path.isdir(folder):
        raise UsageError(f"no such directory: {text}; name an existing one with -C.")
    return folder


def chosen_folder(args: Arguments) -> str:
    """Return the folder of `-C`, or the current one."""
    return str(args.cwd or os.getcwd())


def _shown_options(action: argparse.Action) -> Sequence[str]:
    return [] if action.help == HIDDEN else action.option_strings


def _name(action: argparse.Action) -> str:
    if action.option_strings:
        return action.option_strings[-1]
    return str(action.metavar or action.dest)


def _list(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last
