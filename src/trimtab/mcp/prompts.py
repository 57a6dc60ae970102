"""Prompts of MCP servers, which a person calls as `/SERVER:PROMPT`."""

import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.text import neutralise

COMMAND = re.compile(r"/([^\s:/]+):(\S+)(?:\s+(.*))?", re.DOTALL)
MAX_TEXT = 200_000
Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Sends a request to the server."""


async def expand_prompt(ask: Ask, name: str, words: str) -> str:
    """Return the text of a prompt with its arguments. Raises `UsageError` for missing ones.

    Arguments are `name=value`, or values in the order of the prompt's list.
    """
    listed = (await ask("prompts/list", {})).get("prompts")
    entries = listed if isinstance(listed, list) else []
    entry = next(
        (entry for entry in entries if isinstance(entry, dict) and entry.get("name") == name), None
    )
    if entry is None:
        known = ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, dict))
        raise UsageError(f"There is no prompt {name!r}; the server has {known or 'none'}.")
    wanted = entry.get("arguments")
    arguments = read_arguments(wanted if isinstance(wanted, list) else [], words)
    answer = await ask("prompts/get", {"name": name, "arguments": arguments})
    return read_messages(answer.get("messages"))


def read_arguments(wanted: Sequence[Any], words: str) -> dict[str, str]:
    """Return the arguments of a prompt by name. Raises `UsageError`."""
    names = [str(argument.get("name")) for argument in wanted if isinstance(argument, dict)]
    needed = [
        str(argument["name"])
        for argument in wanted
        if isinstance(argument, dict) and argument.get("required")
    ]
    try:
        parts = shlex.split(words)
    except ValueError:
        parts = words.split()
    found: dict[str, str] = {}
    for part in parts:
        name, mark, value = part.partition("=")
        if mark and name in names:
            found[name] = value
        elif free := [name for name in names if name not in found]:
            found[free[0]] = part
        elif names:
            found[names[-1]] += f" {part}"
    if missing := [name for name in needed if name not in found]:
        raise UsageError(f"The prompt needs {', '.join(missing)}; add it, as in name=value.")
    return found


def read_messages(messages: Any) -> str:
    """Return the texts of a prompt's messages; what is not text is named in its place."""
    texts = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        match content:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "resource", "resource": {"text": str(text)}}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(f"[{kind}, which is not shown]")
    return neutralise("\n\n".join(texts)[:MAX_TEXT])
