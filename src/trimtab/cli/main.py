"""The entry point behind the fast path: subcommands, and runs of the agent."""

import os
import sys
from importlib import import_module

from trimtab.cli.collector import wake
from trimtab.contracts.errors import TrimtabError, UsageError

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
"""Subcommand → module in `cli/commands`, imported when called."""


def main(argv: list[str]) -> int:
    """Run the program; returns its exit code. No traceback reaches a person."""
    try:
        return dispatch(argv)
    except TrimtabError as error:
        return report(argv, error.message, error.exit_code)
    except KeyboardInterrupt:
        return report(argv, "Stopped by SIGINT.", 130)
    except BrokenPipeError:  # nobody reads any more: end quietly, also when Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return report(argv, f"{error.strerror or error}{where}; fix that and run again.", 1)
    except Exception as error:  # a bug must still end with one sentence and one result
        if "TRIMTAB_DEBUG" in os.environ:
            raise
        message = f"Internal error ({type(error).__name__}: {error}); set TRIMTAB_DEBUG=1 for more."
        return report(argv, message, 1)


def dispatch(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        command = import_module(f"trimtab.cli.commands.{COMMANDS[argv[0]]}")
        wake()
        code: int = command.run(argv[1:])
        sys.stdout.flush()
        return code
    if argv and argv[0] in ("-h", "--help"):
        return dispatch(["help"])
    if argv and not argv[0].startswith("-"):
        raise UsageError(
            f"Unknown command {argv[0]!r}; commands are {', '.join(COMMANDS)}, "
            f"and a prompt is given with -p {argv[0]!r}."
        )
    if "--headless" in argv or "--server" in argv:
        from trimtab.cli.parse import parse
        from trimtab.cli.serve import serve

        return serve(parse(argv))
    from trimtab.cli.start import start

    return start(argv)


def report(argv: list[str], message: str, exit_code: int) -> int:
    """Say what went wrong on stderr and, where JSON was asked for, in a result."""
    print(message, file=sys.stderr)
    if wants_json(argv):
        from trimtab.contracts.processor import Stop
        from trimtab.transports.headless.jsonl import JsonLines
        from trimtab.transports.headless.output import Output, take_stdout
        from trimtab.transports.headless.result import Clock, build_result

        reason = "aborted" if exit_code >= 128 else "error"
        stop = Stop(reason=reason, exit_code=exit_code, message=message)
        output = Output(take_stdout())
        JsonLines(output).on_result(build_result(None, stop, Clock()))
        output.finish(1.0)
    return exit_code


def wants_json(argv: list[str]) -> bool:
    """Whether the arguments, right or wrong as a whole, ask for JSON."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--output-format=json" or (word == "--output-format" and following == "json"):
            return True
    return False
