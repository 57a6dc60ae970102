"""Forms in the client: questions of the model, and what MCP servers want to know."""

from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
from trimtab.contracts.questions import Form, Question, Response
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.protocol import AcpError, ClientLeft
from trimtab.transports.acp.schema import ElicitationSupport, FormAnswer

FIELD_TYPES = {"string", "number", "integer", "boolean", "array"}


async def ask_question(
    connection: Connection, session_id: str, call_id: str | None, question: Question
) -> Response | None:
    """Ask a question of the model as a form; return None if the person does not answer."""
    params: JsonObject = {
        "sessionId": session_id,
        "mode": "form",
        "message": question.text,
        "requestedSchema": build_form(question),
    }
    if call_id:
        params["toolCallId"] = call_id
    answer = await _ask(connection, params)
    if answer.action != "accept" or not answer.content:
        return None
    return read_form(question, answer.content)


async def show_form(
    connection: Connection, session_id: str, support: ElicitationSupport, form: Form
) -> JsonObject | None:
    """Show the form of an MCP server; return None if the client cannot show it as it is."""
    params: JsonObject = {"sessionId": session_id, "mode": form.mode}
    params["message"] = f"The MCP server {form.source} asks: {form.message}"
    if form.url and support.url is not None:
        params |= {"elicitationId": new_id(), "url": form.url}
    elif not form.url and support.form is not None and has_known_fields(form.schema):
        params["requestedSchema"] = {"type": "object", **form.schema}
    else:
        return None
    answer = await _ask(connection, params)
    return {"action": answer.action, "content": answer.content}


def has_known_fields(schema: JsonObject) -> bool:
    """Return True if every field has a type that forms of the protocol have."""
    fields = schema.get("properties", {}).values()
    return all(isinstance(field, dict) and field.get("type") in FIELD_TYPES for field in fields)


async def _ask(connection: Connection, params: JsonObject) -> FormAnswer:
    """Return the client's answer. No usable answer cancels the form."""
    try:
        reply = await connection.ask("elicitation/create", params)
        return msgspec.convert(reply, FormAnswer)
    except (AcpError, ClientLeft, msgspec.ValidationError):
        return FormAnswer(action="cancel")


def build_form(question: Question) -> JsonObject:
    """Return the schema of a form: the choices, and a field for other words if they may be used."""
    properties: dict[str, Any] = {}
    if question.choices:
        properties["choice"] = {
            "type": "string",
            "title": "Answer",
            "enum": list(question.choices),
        }
    if question.allow_freeform or not question.choices:
        title = "Other answer" if question.choices else "Answer"
        properties["answer"] = {"type": "string", "title": title}
    schema: JsonObject = {"type": "object", "properties": properties}
    if len(properties) == 1:
        schema["required"] = list(properties)
    return schema


def read_form(question: Question, content: dict[str, Any]) -> Response | None:
    """Return the answer of a form; the person's own words come before a choice."""
    words, choice = content.get("answer"), content.get("choice")
    if isinstance(words, str) and words.strip():
        return Response(text=words, freeform=words not in question.choices)
    if isinstance(choice, str) and choice in question.choices:
        return Response(text=choice, freeform=False)
    return None
