"""`--headless`: serves the protocol of the Copilot SDKs."""

import os

from trimtab.cli.event_loop import run_async
from trimtab.cli.parse import Values
from trimtab.contracts.errors import UsageError
from trimtab.transports.rpc.listen import serve_port, serve_stdio
from trimtab.transports.rpc.server import Server, find_token

_FLAGS_OF_RUNS = ("prompt", "interactive", "resume", "continue", "output_format")


def serve(values: Values) -> int:
    """Serve until a client or a signal ends it; return the exit code."""
    for name in _FLAGS_OF_RUNS:
        if name in values:
            raise UsageError(
                f"--headless and --{name.replace('_', '-')} cannot be used together; leave one out."
            )
    if "stdio" in values and "port" in values:
        raise UsageError("--stdio and --port cannot be used together; leave one out.")
    env = build_env(values)
    cwd = os.path.abspath(values.get("cwd", os.curdir))

    async def run() -> int:
        server = Server(
            env,
            cwd=cwd,
            token=None if "stdio" in values else find_token(env),
            idle_timeout=values.get("session_idle_timeout") or None,
        )
        if "stdio" in values:
            return await serve_stdio(server)
        return await serve_port(server, values.get("port", 0))

    return run_async(run())


def build_env(values: Values) -> dict[str, str]:
    """Return the environment of sessions, with the token the caller chose, or without any."""
    env = dict(os.environ)
    if "config_dir" in values:
        env["COPILOT_HOME"] = os.path.abspath(values["config_dir"])
    if "no_auto_login" in values:
        for name in ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
            env.pop(name, None)
        env["TRIMTAB_NO_LOGIN"] = "1"
    if "auth_token_env" in values:
        variable = str(values["auth_token_env"])
        token = env.get(variable)
        if not token:
            raise UsageError(f"--auth-token-env names {variable}, which is not set; set it.")
        env["COPILOT_GITHUB_TOKEN"] = token
    return env
