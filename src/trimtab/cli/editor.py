"""`--acp`: serves editors by the Agent Client Protocol."""

from typing import TYPE_CHECKING

from trimtab.cli.event_loop import run_async
from trimtab.cli.inputs import build_session_options, refuse_flags
from trimtab.cli.parse import Values
from trimtab.cli.server_env import build_env
from trimtab.cli.session_socket import open_socket
from trimtab.config.paths import find_home
from trimtab.transports.acp.agent import EditorAgent
from trimtab.transports.acp.serve import serve_stdio
from trimtab.transports.headless.logfile import LogFile

if TYPE_CHECKING:
    from trimtab.transports.acp.agent import Observer

OTHERS = ("words", "headless", "port", "cwd", "session_idle_timeout")
"""Flags of another protocol, and what the client chooses."""


def serve_editor(values: Values) -> int:
    """Serve until the client or a signal ends it; return the exit code."""
    refuse_flags(values, "--acp", OTHERS)
    env = build_env(values)
    options = build_session_options(values)
    observer = build_observer(values, env)

    async def run() -> int:
        may_ask = "no_ask_user" not in values
        return await serve_stdio(EditorAgent(env, options, observer, open_socket, may_ask=may_ask))

    return run_async(run())


def build_observer(values: Values, env: dict[str, str]) -> "Observer | None":
    """Return a function that writes events to the log file, if flags ask for one."""
    if not {"log_level", "log_dir"} & values.keys():
        return None
    folder = values.get("log_dir") or find_home(env).logs
    return LogFile(folder, values.get("log_level", "default")).on_event
