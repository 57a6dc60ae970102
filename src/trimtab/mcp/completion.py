"""Completes prompts of MCP servers, and their arguments, while a person types them."""

import re
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.text import neutralise
from trimtab.mcp.prompts import Ask

TYPED = re.compile(r"/([^\s:/]+):(\S*)(?:\s+(.*))?", re.DOTALL)
"""A command as it is typed; its last word may be unfinished."""
MAX_ITEMS = 100


async def complete(ask: Ask, name: str, words: str | None) -> tuple[str, list[str]]:
    """Return the unfinished last word, and what it may become. Raises `UsageError`.

    Without `words`, the name of the prompt itself is completed.
    """
    listed = (await ask("prompts/list", {})).get("prompts")
    entries = [
        entry for entry in (listed if isinstance(listed, list) else ()) if isinstance(entry, dict)
    ]
    if words is None:
        names = [str(entry.get("name")) for entry in entries]
        return name, [found for found in names if found.startswith(name)][:MAX_ITEMS]
    entry = next((entry for entry in entries if entry.get("name") == name), {})
    wanted = entry.get("arguments")
    arguments = [
        str(argument.get("name"))
        for argument in (wanted if isinstance(wanted, list) else ())
        if isinstance(argument, dict)
    ]
    *before, last = words.split(" ")
    given, argument, value = _place(arguments, before, last)
    if not argument:
        return last, []
    answer = await ask(
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": name},
            "argument": {"name": argument, "value": value},
            "context": {"arguments": given},
        },
    )
    return value, _read_values(answer)


def _place(names: list[str], before: list[str], last: str) -> tuple[dict[str, str], str, str]:
    """Return the finished arguments, and the name and the value of the unfinished one."""
    given: dict[str, str] = {}
    for word in filter(None, before):
        name, value = _read_word(names, given, word)
        given[name] = value
    return given, *_read_word(names, given, last)


def _read_word(names: list[str], given: dict[str, str], word: str) -> tuple[str, str]:
    """Return the argument that a word belongs to, and its value: named, or the next one."""
    name, mark, value = word.partition("=")
    if mark and name in names:
        return name, value
    return next((name for name in names if name not in given), ""), word


def _read_values(answer: JsonObject) -> list[str]:
    completion: Any = answer.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    found = [
        value for value in (values if isinstance(values, list) else ()) if isinstance(value, str)
    ]
    return [neutralise(value) for value in found[:MAX_ITEMS]]
