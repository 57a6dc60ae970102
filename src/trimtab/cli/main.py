"""Dispatches to a subcommand or a run of the agent, and handles every error."""

import sys

from trimtab.cli.command_table import COMMANDS, describe_unknown, is_word, run_command
from trimtab.cli.early_terminal import restore_keyboard, silence_keyboard
from trimtab.cli.streams import (
    flush_streams,
    is_debugging,
    prepare_streams,
    report_lost_output,
    say,
)
from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError


def main(argv: list[str]) -> int:
    """Run the program; return its exit code. No exception leaves this function."""
    prepare_streams()
    if not is_debugging():
        sys.unraisablehook = lambda _: None
    return flush_streams(run(argv))


def run(argv: list[str]) -> int:
    """Run the program; turn every exception into one sentence and an exit code."""
    try:
        return dispatch(argv)
    except SystemExit as end:  # argparse has printed help
        return end.code if isinstance(end.code, int) else ExitCode.USAGE
    except BrokenPipeError as error:
        return report_lost_output(error)
    except TrimtabError as error:
        message, code = error.message, error.exit_code
    except KeyboardInterrupt:
        message, code = "Stopped by SIGINT.", ExitCode.INTERRUPTED
    except OSError as error:
        message, code = explain(error), ExitCode.FAILURE
    except BaseException as error:  # a bug must still end with one sentence and one result
        if is_debugging():
            raise
        message = f"Internal error ({type(error).__name__}: {error}); set TRIMTAB_DEBUG=1 for more."
        code = ExitCode.FAILURE
    return report(argv, message, code)


def explain(error: OSError) -> str:
    """Return a sentence for a failure of the operating system."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "The current directory does not exist any more; change to another one."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; fix that and run again."


def dispatch(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        return run_command(argv[0], argv[1:])
    if argv and is_word(argv[0]):
        raise UsageError(describe_unknown(argv))
    if not {"--acp", "--headless", "--server"}.isdisjoint(argv):
        return run_server(argv)
    silence_keyboard(argv)
    try:
        from trimtab.cli.start import start

        return start(argv)
    finally:
        restore_keyboard()


def run_server(argv: list[str]) -> int:
    """Serve an editor or a client of the SDK, unless help or the version is asked for."""
    from trimtab.cli.parse import parse

    values = parse(argv)
    for name in ("help", "version"):
        if name in values:
            return run_command(name, [])
    if "--acp" in argv:
        from trimtab.cli.editor import serve_editor

        return serve_editor(values)
    from trimtab.cli.serve import serve

    return serve(values)


def report(argv: list[str], message: str, exit_code: int) -> int:
    """Print an error to standard error and, if JSON is requested, as a result; return its code."""
    say(message)
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
    """Return True if the arguments, even if they are invalid, ask for JSON."""
    following = [*argv[1:], ""]
    return any(
        word == "--output-format=json" or (word == "--output-format" and value == "json")
        for word, value in zip(argv, following, strict=False)
    )
