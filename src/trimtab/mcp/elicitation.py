"""Forms of MCP servers: a client shows them, or a person is asked field by field."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from trimtab.contracts.events.envelope import EventData, JsonObject
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.options import Client
from trimtab.contracts.questions import AskPerson, Form, Question
from trimtab.contracts.text import neutralise
from trimtab.mcp.messages import INVALID_PARAMS, RemoteError

MAX_MESSAGE_LENGTH = 4000
MAX_FIELDS = 30
ANSWER, ACCEPT, DECLINE = "Answer", "Accept", "Decline"
OPENED, LEAVE_OUT = "I have opened it", "Leave it out"
DECLINED: JsonObject = {"action": "decline"}
CANCELLED: JsonObject = {"action": "cancel"}


class Elicitation:
    """Asks one form at a time. Without anybody to ask, a form is declined."""

    def __init__(self, client: Client, emit: Callable[[EventData], object]) -> None:
        self._client = client
        self._emit = emit
        self._asking = asyncio.Lock()

    async def answer(self, server: str, params: JsonObject, number: str | int = "") -> JsonObject:
        """Return the answer to `elicitation/create`. Raises `RemoteError`."""
        form = read_form(server, params)
        async with self._asking:
            answer = await self._ask(form)
        if answer.get("action") != "accept":
            return {"action": answer.get("action") or "cancel"}
        if form.url:
            return {"action": "accept"}
        content = answer.get("content")
        return {
            "action": "accept",
            "content": fill_defaults(form.schema, content if isinstance(content, dict) else {}),
        }

    async def _ask(self, form: Form) -> JsonObject:
        client = self._client
        if client.ask_form is not None and (answer := await client.ask_form(form)) is not None:
            return answer
        if client.ask_person is not None:
            return await ask_fields(form, client.ask_person)
        message = (
            f"The MCP server {form.source} asked for input ({form.message[:200]}) and was "
            "declined, because nobody is there to answer; run it in a terminal to answer."
        )
        self._emit(SessionWarning(warning_type="mcp_elicitation_declined", message=message))
        return DECLINED


def read_form(server: str, params: JsonObject) -> Form:
    """Return a form. Raises `RemoteError` if the parameters are not those of one."""
    message, schema, url = params.get("message"), params.get("requestedSchema"), params.get("url")
    text = neutralise(message[:MAX_MESSAGE_LENGTH]) if isinstance(message, str) else ""
    if params.get("mode") == "url":
        if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
            raise RemoteError("The url is not an http or https address.", INVALID_PARAMS)
        return Form(source=server, message=text, url=neutralise(url[:MAX_MESSAGE_LENGTH]))
    if not isinstance(schema, dict) or not isinstance(schema.get("properties", {}), dict):
        raise RemoteError("The requestedSchema is not the schema of an object.", INVALID_PARAMS)
    if len(schema.get("properties", {})) > MAX_FIELDS:
        raise RemoteError(f"A form has at most {MAX_FIELDS} fields.", INVALID_PARAMS)
    return Form(source=server, message=text, schema=schema)


def fill_defaults(schema: Mapping[str, Any], content: Mapping[str, Any]) -> JsonObject:
    """Return an answer in which fields that were left out have their defaults."""
    fields = schema.get("properties") or {}
    defaults = {
        name: field["default"]
        for name, field in fields.items()
        if isinstance(field, dict) and field.get("default") is not None
    }
    return {**defaults, **content}


async def ask_fields(form: Form, ask: AskPerson) -> JsonObject:
    """Ask a person whether to answer, and then for each field."""
    fields = {
        name: field for name, field in _fields(form.schema).items() if isinstance(field, dict)
    }
    start = OPENED if form.url else ANSWER if fields else ACCEPT
    text = f"The MCP server {form.source} asks: {form.message}"
    if form.url:
        text += f"\nOpen this address in a browser: {form.url}"
    first = await ask(Question(text=text, choices=(start, DECLINE), allow_freeform=False))
    if first is None:
        return CANCELLED
    if first.text != start:
        return DECLINED
    content: JsonObject = {}
    for name, field in fields.items():
        reply = await ask_field(name, field, form, ask)
        if reply is None:
            return CANCELLED
        content |= reply
    return {"action": "accept", "content": content}


async def ask_field(
    name: str, field: Mapping[str, Any], form: Form, ask: AskPerson
) -> JsonObject | None:
    """Ask for one field until the answer fits, and return it by its name.

    Returns an empty object if the field is left out, None if the person does not answer.
    """
    skip, remark = find_skip(name, field, form), ""
    while True:
        reply = await ask(describe_field(name, field, form, skip, remark))
        if reply is None:
            return None
        if skip and reply.text.strip() in ("", skip):
            return {}
        value = read_value(field, reply.text)
        if value is not None:
            return {name: value}
        remark = f"{reply.text.strip()[:100]!r} does not fit: {describe_kind(field)} is needed."


def find_skip(name: str, field: Mapping[str, Any], form: Form) -> str:
    """Return the choice that leaves a field out; empty if it must be answered."""
    default = field.get("default")
    if isinstance(default, list):
        return neutralise(f"Use {', '.join(map(str, default)) or 'none'}")
    if default is not None:
        return "" if _choices(field) else neutralise(f"Use {default}")
    required = form.schema.get("required")
    return "" if isinstance(required, list) and name in required else LEAVE_OUT


def describe_kind(field: Mapping[str, Any]) -> str:
    if _choices(field):
        return "one of the choices"
    kinds = {"integer": "a whole number", "number": "a number"}
    return kinds.get(str(field.get("type")), "some text")


def describe_field(
    name: str, field: Mapping[str, Any], form: Form, skip: str, remark: str
) -> Question:
    """Return the question for one field of a form."""
    title, description = field.get("title"), field.get("description")
    text = f"{form.source}: {title if isinstance(title, str) else name}"
    if isinstance(description, str):
        text += f" ({description})"
    if remark:
        text += f"\n{remark}"
    choices = tuple(_choices(field))
    return Question(
        text=neutralise(text[:MAX_MESSAGE_LENGTH]),
        choices=(*choices, skip) if skip else choices,
        allow_freeform=not choices or field.get("type") == "array",
    )


def read_value(field: Mapping[str, Any], text: str) -> Any:
    """Return the value that a person typed for a field; None if it does not fit or is empty."""
    words = text.strip()
    if not words:
        return None
    choices = _choices(field)
    match field.get("type"):
        case "boolean":
            return {"yes": True, "true": True, "no": False, "false": False}.get(words.lower())
        case "integer" | "number" as kind:
            try:
                return int(words) if kind == "integer" else float(words)
            except ValueError:
                return None
        case "array":
            chosen = [word.strip() for word in words.split(",") if word.strip()]
            return [choices.get(word, word) for word in chosen]
        case _:
            return choices.get(words) if choices else text


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    return fields if isinstance(fields, dict) else {}


def _choices(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices of a field: what a person reads, and the value it means."""
    if field.get("type") == "boolean":
        return {"Yes": True, "No": False}
    items = field.get("items")
    source = items if field.get("type") == "array" and isinstance(items, dict) else field
    values = source.get("enum")
    if isinstance(values, list):
        names = source.get("enumNames")
        shown = names if isinstance(names, list) and len(names) == len(values) else values
        return {neutralise(str(name)): value for name, value in zip(shown, values, strict=True)}
    options = source.get("oneOf") or source.get("anyOf")
    return {
        neutralise(str(option.get("title", option["const"]))): option["const"]
        for option in (options if isinstance(options, list) else ())
        if isinstance(option, dict) and "const" in option
    }
