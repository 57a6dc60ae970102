"""The table of subcommands, and how one is run."""

from importlib import import_module
from types import ModuleType

from trimtab.cli.collector import wake

COMMANDS = {
    "blame": "blame",
    "agents": "agents",
    "customizations": "customizations",
    "demo": "demo",
    "doctor": "doctor",
    "help": "help",
    "hooks": "hooks",
    "init": "init",
    "instructions": "instructions",
    "mcp": "mcp",
    "mock-model": "mock_model",
    "permissions": "permissions",
    "models": "models",
    "net": "net",
    "redo": "redo",
    "rewind": "rewind",
    "plugins": "plugins",
    "prompt": "prompt",
    "schema": "schema",
    "sessions": "sessions",
    "undo": "undo",
    "skills": "skills",
    "version": "version",
    "worktrees": "worktrees",
}
"""Subcommand → module in `cli/commands`, imported when called.

A module has `HELP`, one line for the list of commands, and `run`. It has `USAGE` as well unless
it parses its arguments with argparse, which answers `--help` itself.
"""


def load_command(name: str) -> ModuleType:
    """Import the module of a subcommand."""
    return import_module(f"trimtab.cli.commands.{COMMANDS[name]}")


def run_command(name: str, argv: list[str]) -> int:
    """Run a subcommand, or print its usage if that is asked for."""
    command = load_command(name)
    wake()
    own = argv[: argv.index("--")] if "--" in argv else argv
    if hasattr(command, "USAGE") and ("-h" in own or "--help" in own):
        print(f"{command.USAGE}\n\n{command.HELP[0].upper()}{command.HELP[1:]}.")
        return 0
    code: int = command.run(argv)
    return code


def is_word(argument: str) -> bool:
    """Tell whether an argument looks like the name of a command: neither a flag nor a prompt."""
    return not argument.startswith("-") and argument.isascii() and len(argument.split()) == 1


def describe_unknown(argv: list[str]) -> str:
    """Say that a command is unknown, which one is meant, and how a prompt is given."""
    import difflib
    import shlex

    words = argv
    for index, word in enumerate(argv):
        if word.startswith("-"):
            words = argv[:index]
            break
    near = difflib.get_close_matches(argv[0], COMMANDS, 1)
    advice = f"did you mean `trimtab {near[0]}`? Or" if near else "see `trimtab help`, or"
    prompt = shlex.quote(" ".join(words))
    return f"Unknown command {argv[0]!r}; {advice} give a prompt with: trimtab -p {prompt}"
