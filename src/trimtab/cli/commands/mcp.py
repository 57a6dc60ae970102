"""`trimtab mcp`: list, show, add, remove, enable, disable, test and serve MCP servers; sign in."""

import os
from collections.abc import Callable

from trimtab.cli.command_parser import Arguments, CommandParser, positive
from trimtab.cli.customizations.files import set_listed
from trimtab.cli.customizations.server_login import log_in, log_out
from trimtab.cli.customizations.server_serving import serve_gateway, serve_own
from trimtab.cli.customizations.servers import (
    add_server,
    remove_server,
    show_server,
    test_server,
)
from trimtab.cli.customizations.show import print_entries, survey_folder
from trimtab.contracts.errors import UsageError


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the servers a session here uses")
    get = actions.add("get", "show a server's configuration")
    get.add_argument("--show-secrets", action="store_true", help="do not mask secrets")
    test = actions.add("test", "connect to a server, list its tools, and disconnect")
    _add_server_arguments(actions.add("add", "add a server to your configuration"))
    remove = actions.add("remove", "remove a server from your configuration")
    enable = actions.add("enable", "use a server again")
    disable = actions.add("disable", "stop using a server")
    login = actions.add("login", "sign in to a server in a browser")
    login.add_argument(
        "--no-browser", action="store_true", help="print the address and open nothing"
    )
    login.add_argument("--scopes", metavar="A,B", help="permissions to ask for")
    logout = actions.add("logout", "forget the sign-in to a server")
    serve = actions.add("serve", "serve this program's own tools to other programs")
    gateway = actions.add("gateway", "serve the configured servers to other programs")
    gateway.add_argument("names", nargs="*", metavar="NAME", help="default: all enabled ones")
    for part in (serve, gateway):
        _add_serving_arguments(part)
    for part in (get, test, remove, enable, disable, login, logout):
        part.add_argument("name", metavar="NAME")
    for part in (parser, listing, get, test):
        part.add_json()
    for part in (parser, listing, get, test, enable, disable, login, logout, serve, gateway):
        part.add_folder()


def _add_serving_arguments(part: CommandParser) -> None:
    part.add_argument("--http", action="store_true", help="serve HTTP instead of stdio")
    part.add_argument("--port", type=positive, metavar="N", help="the port (default: any)")
    part.add_argument("--no-token", action="store_true", help="serve this user without a token")


def _add_server_arguments(add: CommandParser) -> None:
    add.usage = (
        "trimtab mcp add NAME [--env KEY=VALUE] [options] -- COMMAND [ARG ...]\n"
        "       trimtab mcp add NAME [--header 'NAME: VALUE'] [options] URL"
    )
    add.add_argument("name", metavar="NAME", help="what to call the server")
    add.add_argument("target", metavar="COMMAND|URL", help="the program to start, or the address")
    add.add_argument("args", nargs="*", default=[], metavar="ARG", help="arguments of the program")
    add.add_argument("--transport", choices=("stdio", "http", "sse"), help="default: by the target")
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variable for the program; may be repeated",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="a header for the address; may be repeated",
    )
    add.add_argument("--tools", default="*", metavar="A,B", help="only these tools")
    add.add_argument("--timeout", type=positive, metavar="MS", help="milliseconds for a call")


def run(args: Arguments) -> int:
    match args.action:
        case "list":
            print_entries(survey_folder(args), kinds=("mcp-server",), as_json=args.json)
        case "get":
            show_server(args.name, args)
        case "add":
            print(f"Added {args.name} to {add_server(args)}.")
        case "remove":
            print(f"Removed {args.name} from {remove_server(args.name)}.")
        case "enable" | "disable" as action:
            found = survey_folder(args).find(args.name)
            if not any(entry.kind == "mcp-server" for entry in found):
                raise UsageError(f"There is no MCP server {args.name!r}; see `trimtab mcp`.")
            set_listed(os.environ, "disabledMcpServers", args.name, listed=action == "disable")
            print(f"{args.name} is {action}d.")
        case action:
            return CONNECTING[action](args)
    return 0


CONNECTING: dict[str, Callable[[Arguments], int]] = {
    "test": lambda args: test_server(args.name, args),
    "login": lambda args: log_in(args.name, args),
    "logout": lambda args: log_out(args.name, args),
    "serve": serve_own,
    "gateway": serve_gateway,
}
"""The actions that connect to servers, or serve."""
