"""Shows, tests, adds and removes the MCP servers of the person."""

import json
import os
from typing import Any

import msgspec

from trimtab.cli.command_parser import Arguments, chosen_folder
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.secrets import MASK
from trimtab.contracts.text import neutralise
from trimtab.customize.overview import gather
from trimtab.customize.server_entry import find_secrets
from trimtab.customize.user_servers import UserServers
from trimtab.mcp.check import check_server
from trimtab.models.choose import is_offline
from trimtab.providers.addresses import parse_url


def show_server(name: str, args: Arguments) -> None:
    """Print a server as a session would use it. Secrets are masked without `--show-secrets`."""
    shown = describe_server(find_server(name, args), secrets=args.show_secrets)
    if args.json:
        print_json(shown)
        return
    for field, value in shown.items():
        text = value if isinstance(value, str) else json.dumps(value)
        print(neutralise(f"{field:<14} {text}"))


def find_server(name: str, args: Arguments) -> McpServer:
    """Return a server of a session here; those of an untrusted folder are not included."""
    servers = gather(os.environ, SessionOptions(cwd=chosen_folder(args))).servers.servers
    if name not in servers:
        raise UsageError(f"There is no MCP server {name!r}; see `trimtab mcp`.")
    return servers[name]


def test_server(name: str, args: Arguments) -> int:
    """Connect to a server, print its tools, and disconnect; return 0 if it works."""
    offline = is_offline(SessionOptions(cwd=chosen_folder(args)), os.environ)
    result = run_async(check_server(find_server(name, args), os.environ, offline=offline))
    if args.json:
        print_json(result)
        return 0 if result.status == "connected" else 1
    print(neutralise(f"{name}: {result.status}" + (f" ({result.error})" if result.error else "")))
    width = max(map(len, result.tools), default=0)
    for tool, description in result.tools.items():
        first = description.strip().partition("\n")[0]
        print(neutralise(f"  {tool:<{width}}  {first[:100]}".rstrip()))
    if result.instructions:
        print(neutralise(f"Instructions: {result.instructions}"))
    for warning in result.warnings:
        print(neutralise(f"Note: {warning}."))
    return 0 if result.status == "connected" else 1


def describe_server(server: McpServer, *, secrets: bool) -> dict[str, Any]:
    """Return the fields that are set. Values of variables and headers may be secrets."""
    shown = {
        name: value
        for name, value in msgspec.to_builtins(server).items()
        if value not in ("", None, [], {}, ()) and name != "digest"
    }
    for field in () if secrets else ("env", "headers"):
        if field in shown:
            shown[field] = dict.fromkeys(shown[field], MASK)
    if not secrets and "extra" in shown:
        shown["extra"] = _mask(shown["extra"], set(find_secrets(server.extra)))
    return shown


def _mask(value: Any, secrets: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _mask(inner, secrets) for name, inner in value.items()}
    return MASK if isinstance(value, str) and value in secrets else value


def add_server(args: Arguments) -> str:
    """Write a server into the user's file and return its path. Never replaces a server."""
    servers = UserServers(find_home(os.environ))
    transport = args.transport
    if transport is None:
        transport = "http" if args.target.startswith(("http://", "https://")) else "stdio"
    if transport == "stdio":
        entry: dict[str, Any] = {"type": "local", "command": args.target, "args": args.args}
        entry["env"] = _pairs(args.env, "=", "--env KEY=VALUE")
    else:
        check_address(args.target)
        entry = {"type": transport, "url": args.target}
        entry["headers"] = _pairs(args.header, ":", "--header 'Name: value'")
    entry["tools"] = args.tools.split(",")
    if args.timeout is not None:
        entry["timeout"] = args.timeout
    servers.add(args.name, {field: value for field, value in entry.items() if value != {}})
    return servers.path


def check_address(text: str) -> None:
    """Raise `UsageError` unless the text is a valid URL."""
    try:
        parse_url(text, "MCP server")
    except ModelError as error:
        raise UsageError(error.message) from None


def remove_server(name: str) -> str:
    servers = UserServers(find_home(os.environ))
    servers.remove(name)
    return servers.path


def _pairs(texts: list[str], separator: str, form: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, found, value = text.partition(separator)
        if not found or not key.strip():
            raise UsageError(f"{text!r} is not of the form {form}; correct it.")
        pairs[key.strip()] = value.strip()
    return pairs
