"""`trimtab mcp serve` and `trimtab mcp gateway`: serve MCP to other programs."""

import asyncio
import os
import secrets
import signal
import sys

import msgspec

from trimtab.cli.command_parser import Arguments, chosen_folder
from trimtab.cli.event_loop import run_async
from trimtab.config.host_settings import is_enabled
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.customize.overview import gather
from trimtab.mcp.check import ServerReach
from trimtab.mcp.oauth.session_sign_in import SessionSignIn
from trimtab.mcp.oauth.store import GrantStore
from trimtab.models.choose import is_offline
from trimtab.transports.mcp.gateway import Gateway
from trimtab.transports.mcp.http import PATH, HttpService
from trimtab.transports.mcp.own import OwnService
from trimtab.transports.mcp.service import NewService
from trimtab.transports.mcp.stdio import serve_stdio

INSIDE = "TRIMTAB_MCP_GATEWAY"
"""Set for the programs that a gateway starts: other agents' files may configure it itself."""
VARIABLE = "TRIMTAB_MCP_TOKEN"
"""The variable with the token that clients must send."""


def serve_own(args: Arguments) -> int:
    """Serve this program's own tools until the client or a signal ends it."""
    cwd = os.path.abspath(chosen_folder(args))
    return run_async(_serve(args, lambda link: OwnService(os.environ, cwd, link)))


def serve_gateway(args: Arguments) -> int:
    """Serve configured servers: those that are named, else all that are enabled."""
    if os.environ.get(INSIDE):
        raise UsageError(
            "A gateway started this one, which would go on without end; leave `trimtab mcp "
            "gateway` out of the servers that it serves."
        )
    folder = chosen_folder(args)
    custom = gather(os.environ, SessionOptions(cwd=folder))
    if not is_enabled(custom.settings, "mcp.enabled"):
        raise UsageError(
            "The setting host.mcp.enabled keeps MCP servers from being served; set it to true."
        )
    found = custom.servers.servers
    missing = [name for name in args.names if name not in found]
    if missing:
        raise UsageError(f"There is no MCP server {missing[0]!r}; see `trimtab mcp`.")
    wanted = args.names or [name for name, server in found.items() if server.enabled]
    if not wanted:
        raise UsageError("No MCP server is configured; add one with `trimtab mcp add`.")
    servers = {name: found[name] for name in wanted}

    async def run() -> int:
        offline = is_offline(SessionOptions(cwd=folder), os.environ)
        reach = ServerReach(os.environ, offline=offline)
        store = GrantStore(find_home(os.environ), os.environ)
        access = reach.build_access(
            lambda server: SessionSignIn(server, reach.http, store, lambda _: None)
        )
        access = msgspec.structs.replace(access, env={**access.env, INSIDE: "1"})
        try:
            return await _serve(args, lambda link: Gateway(servers, access, link, _warn))
        finally:
            await reach.aclose()

    return run_async(run())


def _warn(message: str) -> None:
    print(f"Warning: {neutralise(message)}", file=sys.stderr, flush=True)


async def _serve(args: Arguments, new_service: NewService) -> int:
    if not args.http:
        if args.port is not None or args.no_token:
            raise UsageError("--port and --no-token are for --http; add --http.")
        return await serve_stdio(new_service)
    token = "" if args.no_token else os.environ.get(VARIABLE, "")
    if not token and not args.no_token:
        token = secrets.token_urlsafe(24)
        print(f"Token, shown once: {token}", file=sys.stderr)
    service = HttpService(new_service, token)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        port = await service.start(args.port or 0)
    except OSError as error:
        raise UsageError(
            f"Port {args.port} cannot be used ({error.strerror}); choose another with --port."
        ) from None
    print(f"Listening on http://127.0.0.1:{port}{PATH}", file=sys.stderr, flush=True)
    print(service.describe_access(), file=sys.stderr, flush=True)
    try:
        await stopped.wait()
    finally:
        await service.aclose()
    return 0
