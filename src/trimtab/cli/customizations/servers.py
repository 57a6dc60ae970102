"""Reads and changes the MCP servers of the person."""

import json
import os
from typing import Any

import msgspec

from trimtab.cli.customizations.arguments import Given
from trimtab.cli.streams import print_json
from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.customize.overview import gather
from trimtab.customize.user_servers import UserServers
from trimtab.providers.addresses import parse_url


def show_server(name: str, given: Given) -> None:
    """One server as it would be used, secrets masked unless they are asked for."""
    shown = describe_server(find_server(name, given), secrets="--show-secrets" in given.switches)
    if given.json:
        print_json(shown)
        return
    for field, value in shown.items():
        text = value if isinstance(value, str) else json.dumps(value)
        print(neutralise(f"{field:<14} {text}"))


def find_server(name: str, given: Given) -> McpServer:
    """Raises `UsageError`. What an untrusted folder configures is not there."""
    servers = gather(os.environ, SessionOptions(cwd=given.cwd)).servers.servers
    if name not in servers:
        raise UsageError(f"There is no MCP server {name!r}; see `trimtab mcp`.")
    return servers[name]


def test_server(name: str, given: Given) -> int:
    """Connect to a server, say what it has, and end it again; 0 if it works."""
    from trimtab.cli.event_loop import run_async
    from trimtab.mcp.check import check_server
    from trimtab.models.choose import is_offline

    offline = is_offline(SessionOptions(cwd=given.cwd), os.environ)
    result = run_async(check_server(find_server(name, given), os.environ, offline=offline))
    if given.json:
        print_json(result)
        return 0 if result.status == "connected" else 1
    print(neutralise(f"{name}: {result.status}" + (f" ({result.error})" if result.error else "")))
    width = max(map(len, result.tools), default=0)
    for tool, description in result.tools.items():
        first = description.strip().partition("\n")[0]
        print(neutralise(f"  {tool:<{width}}  {first[:100]}".rstrip()))
    if result.instructions:
        print(neutralise(f"It says: {result.instructions}"))
    for warning in result.warnings:
        print(neutralise(f"Note: {warning}."))
    return 0 if result.status == "connected" else 1


def describe_server(server: McpServer, *, secrets: bool) -> dict[str, Any]:
    """The fields that are set. Values of variables and headers may be secrets."""
    shown = {
        name: value
        for name, value in msgspec.to_builtins(server).items()
        if value not in ("", None, [], {}, ()) and name != "digest"
    }
    for field in () if secrets else ("env", "headers"):
        if field in shown:
            shown[field] = dict.fromkeys(shown[field], "******")
    return shown


def add_server(name: str, target: str, args: list[str], given: Given) -> str:
    """Write a server into the user's file; returns that file. An old one is not replaced."""
    servers = UserServers(find_home(os.environ))
    transport = given.values.get("--transport")
    if transport is None:
        transport = "http" if target.startswith(("http://", "https://")) else "stdio"
    if transport == "stdio":
        entry: dict[str, Any] = {"type": "local", "command": target, "args": args}
        entry["env"] = _pairs(given.lists.get("--env", []), "=", "--env KEY=VALUE")
    elif transport in ("http", "sse"):
        check_address(target)
        entry = {"type": transport, "url": target}
        entry["headers"] = _pairs(given.lists.get("--header", []), ":", "--header 'Name: value'")
    else:
        raise UsageError(f"--transport is stdio, http or sse, not {transport!r}; choose one.")
    entry["tools"] = (given.values.get("--tools") or "*").split(",")
    if timeout := given.values.get("--timeout"):
        if not timeout.isdigit():
            raise UsageError(f"--timeout needs a number of milliseconds, not {timeout!r}.")
        entry["timeout"] = int(timeout)
    servers.add(name, {field: value for field, value in entry.items() if value != {}})
    return servers.path


def check_address(text: str) -> None:
    """Raise `UsageError` unless the text is an address that can be connected to."""
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
