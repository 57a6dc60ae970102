"""`--acp`: serves editors by the Agent Client Protocol."""

from typing import TYPE_CHECKING

from trimtab.cli.event_loop import run_async
from trimtab.cli.inputs import build_session_options
from trimtab.cli.parse import Values
from trimtab.cli.server_env import build_env
from trimtab.cli.session_socket import open_socket
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.transports.acp.agent import EditorAgent
from trimtab.transports.acp.serve import serve_stdio

if TYPE_CHECKING:
    from trimtab.transports.acp.agent import Observer

FLAGS_OF_RUNS = (
    "words",
    "prompt",
    "interactive",
    "resume",
    "continue",
    "session_id",
    "name",
    "output_format",
    "attachment",
    "share",
    "usage_output_file",
    "headless",
    "port",
    "cwd",
    "session_idle_timeout",
)
"""Flags about one prompt, one session or another protocol; the client chooses the folder."""


def serve_editor(values: Values) -> int:
    """Serve until the client or a signal ends it; return the exit code."""
    for name in FLAGS_OF_RUNS:
        if name in values:
            flag = "a prompt" if name == "words" else f"--{name.replace('_', '-')}"
            raise UsageError(f"--acp and {flag} cannot be used together; leave one out.")
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
    from trimtab.transports.headless.logfile import LogFile

    folder = values.get("log_dir") or find_home(env).logs
    return LogFile(folder, values.get("log_level", "default")).on_event
