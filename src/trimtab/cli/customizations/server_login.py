"""Signs a person in to an MCP server, and out again."""

import os
import sys
import threading
import webbrowser

from trimtab.cli.command_parser import Arguments, chosen_folder
from trimtab.cli.customizations.servers import find_server
from trimtab.cli.event_loop import run_async
from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import AuthenticationError, ConfigurationError, UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.mcp.brief_connection import CheckResult, connect_briefly
from trimtab.mcp.check import ServerReach
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.documents import Challenge
from trimtab.mcp.oauth.login import Login
from trimtab.mcp.oauth.store import Grant, GrantStore
from trimtab.models.choose import is_offline


def log_in(name: str, args: Arguments) -> int:
    """Sign in to a server; returns 0 once the server accepts the token."""
    server = find_server(name, args)
    if server.type == "local":
        raise UsageError(f"{name} is a program on this machine; nobody signs in to it.")
    if any(header.lower() == "authorization" for header in server.headers):
        raise UsageError(
            f"{name} has a token in its headers already; remove Authorization from its entry to "
            "sign in instead."
        )
    _store().check(server)
    grant = run_async(_log_in(server, args))
    _store().write(server, grant)
    print(f"Signed in to {name}.")
    return 0


async def _log_in(server: McpServer, args: Arguments) -> Grant:
    offline = is_offline(SessionOptions(cwd=chosen_folder(args)), os.environ)
    reach = ServerReach(os.environ, offline=offline)
    scopes = tuple((args.scopes or "").replace(",", " ").split())
    show = print_address if args.no_browser else open_address
    try:
        login = Login(server, reach.http, show, _read_before(server), scopes)
        access = reach.build_access(lambda _: login)
        result = await login.run(lambda: connect_briefly(server, access))
        if result.status == "connected" and login.grant is None:
            await login.authorize(Challenge())
            result = await login.run(lambda: connect_briefly(server, access))
    except ServerProblem as problem:
        reason = " ".join(neutralise(str(problem)).split())
        raise AuthenticationError(f"Signing in to {server.name} failed: {reason}.") from None
    finally:
        await reach.aclose()
    if result.status != "connected" or login.grant is None:
        raise _explain(server, result)
    return login.grant


def _explain(server: McpServer, result: CheckResult) -> AuthenticationError:
    return AuthenticationError(f"Signing in to {server.name} failed: {result.error}.")


def _read_before(server: McpServer) -> Grant | None:
    """Return the sign-in of before; one that cannot be read is replaced."""
    try:
        return _store().read(server)
    except ConfigurationError:
        return None


def log_out(name: str, args: Arguments) -> int:
    """Forget the tokens and the client of a server."""
    server = find_server(name, args)
    done = _store().delete(server)
    print(f"Signed out of {name}." if done else f"You were not signed in to {name}.")
    return 0


def open_address(url: str) -> None:
    """Print an address and open it in a browser."""
    print_address(url)
    # A text browser keeps the call until it is closed, so that nobody must wait for it.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def print_address(url: str) -> None:
    print(f"Open this address to sign in:\n{url}", file=sys.stderr, flush=True)


def _store() -> GrantStore:
    return GrantStore(find_home(os.environ), os.environ)
