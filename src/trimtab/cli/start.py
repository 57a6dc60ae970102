"""Starts a run: parses its flags, and connects session, output and log file."""

import os
from collections.abc import Callable, Mapping

import msgspec

from trimtab.cli.command_table import run_command
from trimtab.cli.early_terminal import restore_keyboard
from trimtab.cli.event_loop import run_async
from trimtab.cli.inputs import attach_all, build_options, find_mode_after_plan, read_prompt
from trimtab.cli.opening import build_face, open_session
from trimtab.cli.parse import Values, parse
from trimtab.cli.session_socket import open_socket
from trimtab.config.files import replace_file
from trimtab.config.settings import Settings
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.options import Client
from trimtab.contracts.provider import Provider
from trimtab.runtime.live import LiveSession
from trimtab.runtime.runtime import Runtime
from trimtab.transports.headless.logfile import LogFile
from trimtab.transports.headless.output import open_outputs, take_stdout
from trimtab.transports.headless.result import Clock
from trimtab.transports.headless.run import Headless

MIN_COLUMNS, MIN_ROWS = 20, 6
"""A smaller window is served by plain lines."""

Finisher = Callable[[LiveSession, JsonObject], None]


def start(argv: list[str], provider: Provider | None = None) -> int:
    """Run the agent as the flags say; return the exit code."""
    clock = Clock()
    values = parse(argv)
    if "help" in values or "version" in values:
        return run_command("help" if "help" in values else "version", [])
    take_words(values)
    env = dict(os.environ)
    if "config_dir" in values:
        env["COPILOT_HOME"] = os.path.abspath(values["config_dir"])
    options = build_options(values)
    if "fleet" in values:
        from trimtab.cli.commands.fleet import run_prompt

        return run_prompt(values, env, clock)
    runtime = Runtime(env=env, provider=provider, on_open=open_socket)
    log = LogFile(values.get("log_dir") or runtime.home.logs, values.get("log_level", "default"))
    if wants_dialog(values):
        if suits_tui(values, runtime):
            from trimtab.cli.terminal import converse

            return converse(runtime, options, values, log)
        from trimtab.cli.talk import talk

        restore_keyboard()
        return run_async(talk(runtime, options, values, log))
    answer, notes = open_outputs(take_stdout(), 2)
    face = build_face(values, answer, notes)

    def on_event(event: Event, line: bytes) -> None:
        face.on_event(event, line)
        log.on_event(event, line)

    headless = Headless(
        face=face,
        outputs=(answer, notes),
        clock=clock,
        open_session=lambda: open_session(runtime, options, values, Client(on_event=on_event)),
        read_prompt=lambda: read_prompt(values),
        prepare=attach_all(values, options.cwd),
        mode_after_plan=find_mode_after_plan(values),
        finishers=build_finishers(values, runtime),
        notices=tuple(
            ("flag_ignored", f"{name} has no effect: {why}.") for name, why in values["ignored"]
        ),
    )
    answer.on_closed = headless.on_output_closed
    return run_async(headless.run())


def take_words(values: Values) -> None:
    """Treat a prompt without a flag as `-i` at a terminal, else as `-p`."""
    if "words" in values:
        values["interactive" if is_at_terminal(values) else "prompt"] = values.pop("words")


def is_at_terminal(values: Values) -> bool:
    """Return True if a person can answer and read."""
    return os.isatty(0) and os.isatty(1) and values.get("output_format") != "json"


def wants_dialog(values: Values) -> bool:
    """Return True if the run is a conversation."""
    if "interactive" in values and not os.isatty(0):
        raise UsageError("--interactive needs a terminal; give the prompt with -p instead.")
    return "interactive" in values or ("prompt" not in values and is_at_terminal(values))


def suits_tui(values: Values, runtime: Runtime) -> bool:
    """Return True if the terminal can show live rows and nobody asks for plain lines."""
    if "plain" in values or not is_at_terminal(values):
        return False
    if runtime.env.get("TERM", "dumb") == "dumb":
        return False
    columns, rows = os.get_terminal_size(1)
    if 0 < columns < MIN_COLUMNS or 0 < rows < MIN_ROWS:
        return False
    return not Settings(runtime.home).get("screenReader", bool, False)


def build_finishers(values: Values, runtime: Runtime) -> list[Finisher]:
    """Return the functions that write files when the run has ended."""
    finishers: list[Finisher] = []
    if "usage_output_file" in values:
        finishers.append(lambda _, result: write_usage(values["usage_output_file"], result))
    if "share" in values:
        finishers.append(lambda live, _: write_share(values["share"], live, runtime.env))
    return finishers


def write_usage(path: str, result: JsonObject) -> None:
    fields = ("sessionId", "model", "exitCode", "status", "usage")
    usage = {field: result[field] for field in fields}
    replace_file(path, msgspec.json.format(msgspec.json.encode(usage), indent=2) + b"\n", 0o644)


def write_share(path: str | bool, live: LiveSession, env: Mapping[str, str]) -> None:
    from trimtab.session.archive import Archive

    target = f"trimtab-session-{live.id}.md" if path is True else str(path)
    document = "".join(Archive(env).export(live.id, "md"))
    replace_file(target, document.encode("utf-8", "replace"), 0o644)
