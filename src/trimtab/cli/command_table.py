"""The table of subcommands, in the order and groups in which `trimtab help` shows them."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from trimtab.cli.garbage_collection import enable_collection

if TYPE_CHECKING:
    from trimtab.cli.command_parser import CommandParser

GROUPS = (
    (
        "Start here",
        (
            ("demo", "run the agent once on a small example project"),
            ("init", "write a first .github/copilot-instructions.md for this repository"),
            ("help", "show this help, or the help of a command"),
            ("version", "print the version"),
        ),
    ),
    (
        "Sessions",
        (
            ("sessions", "list, show, verify, repair, export, fork, delete or restore sessions"),
            ("tasks", "list, follow, write to or stop agents and commands of live sessions"),
            ("fleet", "split a goal among agents in worktrees, and merge their work"),
            ("attach", "follow, prompt, answer and stop a session that another process runs"),
            ("worktrees", "list or remove the git worktrees made for sessions"),
        ),
    ),
    (
        "What changed",
        (
            ("undo", "restore the files that a prompt's work changed"),
            ("redo", "reverse the last undo"),
            ("rewind", "go back to before a prompt: conversation, files, or both"),
            ("blame", "show who wrote each line of a file: a session's prompt or a person"),
        ),
    ),
    (
        "Set-up",
        (
            ("flags", "list the feature flags: state, source and effect"),
            ("customizations", "list everything that customizes a session here; explain an entry"),
            ("instructions", "list the instruction files a session here loads"),
            ("skills", "list, add, remove, enable or disable skills"),
            ("agents", "list, add, remove, enable or disable agents"),
            ("mcp", "list, show, add, remove, test, sign in to or serve MCP servers"),
            ("lsp", "list the language servers for the files here, and try them"),
            ("hooks", "list hooks, or run them on a sample input"),
            ("plugins", "list, install, update, enable, disable or uninstall plugins"),
            ("permissions", "explain decisions about commands, suggest rules"),
        ),
    ),
    (
        "Models",
        (
            (
                "models",
                "list the models that can be used now; probe a model; fetch the embedded one",
            ),
            ("runtimes", "list the other agents that can do the work here; probe one"),
            ("bridge", "let other programs use these models: Claude Code, Codex, any client"),
        ),
    ),
    (
        "Diagnosis",
        (
            ("doctor", "check the installation, the sandbox, trust and settings"),
            ("prompt", "show what would be sent to the model; compare two prompts"),
            ("net", "list every address that could be contacted, and why"),
        ),
    ),
    (
        "For developers",
        (
            ("simulate", "play recorded sessions again, and show what differs"),
            ("mock-model", "run a model server that answers from a script"),
            ("schema", "print the JSON Schema of the event stream"),
        ),
    ),
)
"""Group → commands with their one-line summaries."""

COMMANDS = {name: summary for _, rows in GROUPS for name, summary in rows}

_SHARED = {"redo": "undo", "rewind": "undo"}
"""Commands that live in the module of another one."""


def load_command(name: str) -> ModuleType:
    """Import the module of a subcommand.

    It has `add_arguments`, which completes the parser, and `run`, which takes the parsed
    arguments and returns the exit code.
    """
    module = _SHARED.get(name, name).replace("-", "_")
    return import_module(f"trimtab.cli.commands.{module}")


def build_parser(name: str) -> "CommandParser":
    """Return the parser of a subcommand."""
    from trimtab.cli.command_parser import CommandParser

    summary = COMMANDS[name]
    parser = CommandParser(
        prog=f"trimtab {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        passes_unknown=name == "demo",
    )
    load_command(name).add_arguments(parser)
    return parser


def run_command(name: str, argv: list[str]) -> int:
    """Run a subcommand; return its exit code."""
    module = load_command(name)
    if hasattr(module, "run_flags") and module.takes_flags(argv):
        enable_collection()
        flags_code: int = module.run_flags(argv)
        return flags_code
    args = build_parser(name).parse(argv, command=name)
    enable_collection()
    code: int = module.run(args)
    return code


def is_word(argument: str) -> bool:
    """Return True if an argument looks like the name of a command, not like a flag or prompt."""
    return not argument.startswith("-") and argument.isascii() and len(argument.split()) == 1


def describe_unknown(argv: list[str]) -> str:
    """Return the error for an unknown command: a similar command, and how to give a prompt."""
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
