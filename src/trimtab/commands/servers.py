"""`/mcp`: what a person asks of the MCP servers of a session."""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.text import neutralise
from trimtab.mcp.result import read_result
from trimtab.mcp.server_notices import LEVELS
from trimtab.mcp.session_servers import SessionServers

MAX_TEXT = 20_000
FORMS: Mapping[str, tuple[int, int, str]] = {
    "enable": (1, 1, "enable NAME"),
    "disable": (1, 1, "disable NAME"),
    "restart": (1, 1, "restart NAME"),
    "logs": (0, 1, "logs [NAME]"),
    "level": (2, 2, f"level NAME {'|'.join(LEVELS)}"),
    "prompts": (1, 1, "prompts NAME"),
    "resources": (1, 1, "resources NAME"),
    "read": (2, 2, "read NAME ADDRESS"),
    "complete": (1, 1, "complete /NAME:PROMPT…"),
}
"""Action → the least and the greatest number of its arguments, and how it is written."""


async def ask_servers(servers: SessionServers, arguments: str) -> str:
    """Do what `/mcp` was given; return the text to show. Raises `UsageError`."""
    action, _, rest = arguments.strip().partition(" ")
    if action not in FORMS:
        written = ", ".join(f"/mcp {form}" for _, _, form in FORMS.values())
        raise UsageError(
            f"/mcp has no action {action!r}; write {written}, /mcp reload, or /mcp alone."
        )
    least, most, form = FORMS[action]
    words = [rest.lstrip()] if action == "complete" else _split(rest)
    if not least <= len(list(filter(None, words))) <= most:
        raise UsageError(f"The arguments are not right; write /mcp {form}.")
    await servers.start()
    return await ACTIONS[action](servers, *words)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


async def show_logs(servers: SessionServers, name: str = "") -> str:
    lines = servers.find_log_lines(name)
    return "\n".join(lines) or (
        "The servers have not logged anything; see `logLevel`, or write /mcp level NAME debug."
    )


async def set_level(servers: SessionServers, name: str, level: str) -> str:
    if level not in LEVELS:
        raise UsageError(f"{level!r} is not a level; use one of {', '.join(LEVELS)}.")
    await servers.set_log_level(name, level)
    return f"Lines of {name} from {level} on are shown."


async def list_prompts(servers: SessionServers, name: str) -> str:
    entries = _read_list(await servers.request(name, "prompts/list", {}), "prompts")
    lines = []
    for entry in entries:
        wanted = entry.get("arguments")
        names = [
            str(each.get("name")) if each.get("required") else f"[{each.get('name')}]"
            for each in (wanted if isinstance(wanted, list) else ())
            if isinstance(each, dict)
        ]
        words = " ".join((f"/{name}:{entry.get('name')}", *names))
        lines.append(_line(words, entry.get("description")))
    return neutralise("\n".join(lines)) or f"{name} has no prompts."


async def list_resources(servers: SessionServers, name: str) -> str:
    entries = _read_list(await servers.request(name, "resources/list", {}), "resources")
    try:
        answer = await servers.request(name, "resources/templates/list", {})
    except UsageError:
        answer = {}  # not every server has templates
    entries += _read_list(answer, "resourceTemplates")
    lines = [
        _line(
            str(entry.get("uri") or entry.get("uriTemplate")),
            entry.get("description") or entry.get("name"),
        )
        for entry in entries
    ]
    return neutralise("\n".join(lines)) or f"{name} has no resources."


async def read_resource(servers: SessionServers, name: str, uri: str) -> str:
    answer = await servers.request(name, "resources/read", {"uri": uri})
    contents = answer.get("contents")
    blocks = [
        {"type": "resource", "resource": content}
        for content in (contents if isinstance(contents, list) else ())
    ]
    text = read_result({"content": blocks}, "hidden_characters").text
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[… {len(text)} characters]"


async def complete_words(servers: SessionServers, typed: str) -> str:
    _, values = await servers.complete(typed)
    return "\n".join(values) or "Nothing fits; write /mcp complete /NAME:PROMPT…."


async def enable(servers: SessionServers, name: str) -> str:
    await servers.switch(name, enabled=True)
    return f"{name} is enabled for this session."


async def disable(servers: SessionServers, name: str) -> str:
    await servers.switch(name, enabled=False)
    return f"{name} is disabled for this session."


async def restart(servers: SessionServers, name: str) -> str:
    await servers.restart(name)
    return f"{name} is restarted."


ACTIONS: Mapping[str, Callable[..., Awaitable[str]]] = {
    "enable": enable,
    "disable": disable,
    "logs": show_logs,
    "level": set_level,
    "prompts": list_prompts,
    "resources": list_resources,
    "read": read_resource,
    "complete": complete_words,
    "restart": restart,
}


def _read_list(answer: JsonObject, key: str) -> list[dict[str, Any]]:
    found: Sequence[Any] = listed if isinstance(listed := answer.get(key), list) else ()
    return [entry for entry in found if isinstance(entry, dict)]


def _line(words: str, description: Any) -> str:
    first = description.strip().partition("\n")[0] if isinstance(description, str) else ""
    return f"{words}  {first[:100]}".rstrip()
