"""`--headless`: serves the protocol of the Copilot SDKs."""

from trimtab.cli.event_loop import run_async
from trimtab.cli.inputs import build_session_options, refuse_flags
from trimtab.cli.parse import Values
from trimtab.cli.server_env import build_env
from trimtab.contracts.errors import UsageError
from trimtab.transports.rpc.listen import serve_port, serve_stdio
from trimtab.transports.rpc.server import Server, find_token


def serve(values: Values) -> int:
    """Serve until a client or a signal ends it; return the exit code."""
    refuse_flags(values, "--headless")
    if "stdio" in values and "port" in values:
        raise UsageError("--stdio and --port cannot be used together; leave one out.")
    env = build_env(values)
    defaults = build_session_options(values)

    async def run() -> int:
        server = Server(
            env,
            defaults=defaults,
            token=None if "stdio" in values else find_token(env),
            idle_timeout=values.get("session_idle_timeout") or None,
        )
        if "stdio" in values:
            return await serve_stdio(server)
        return await serve_port(server, values.get("port", 0))

    return run_async(run())
