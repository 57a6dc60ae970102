"""Forms of MCP servers: asked of a client or a person, declined without either."""

from typing import Any

import pytest

from mcpserver import FORM
from trimtab.contracts.options import Client
from trimtab.contracts.questions import Form, Question, Response
from trimtab.mcp.elicitation import Elicitation, read_value
from trimtab.mcp.messages import RemoteError


class Person:
    """Answers questions one after another."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Response | None:
        self.asked.append(question)
        text = self.answers.pop(0)
        return None if text is None else Response(text=text)


async def ask(client: Client, params: Any = FORM) -> tuple[Any, list[Any]]:
    told: list[Any] = []
    return await Elicitation(client, told.append).answer("small", params), told


async def test_without_anybody_a_form_is_declined_and_that_is_told() -> None:
    answer, (warning,) = await ask(Client())
    assert answer == {"action": "decline"}
    assert warning.warning_type == "mcp_elicitation_declined"
    assert "Which colour?" in warning.message


async def test_a_client_that_shows_forms_gets_it_and_left_out_fields_have_defaults() -> None:
    shown: list[Form] = []

    async def show(form: Form) -> Any:
        shown.append(form)
        return {"action": "accept", "content": {"count": 2}}

    answer, _ = await ask(Client(ask_form=show))
    assert answer == {"action": "accept", "content": {"colour": "red", "count": 2}}
    assert (shown[0].source, shown[0].mode) == ("small", "form")


async def test_a_person_is_asked_field_by_field_until_the_value_fits() -> None:
    person = Person("Answer", "blue", "many", "3")
    answer, _ = await ask(Client(ask_person=person))
    assert answer == {"action": "accept", "content": {"colour": "blue", "count": 3}}
    assert person.asked[0].text == "The MCP server small asks: Which colour?"
    assert person.asked[1].choices == ("red", "blue")
    assert person.asked[3].text == "small: count\n'many' does not fit: a whole number is needed."


async def test_a_field_that_may_be_left_out_has_a_choice_for_it() -> None:
    fields = {
        "name": {"type": "string", "default": "John"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"]},
        "note": {"type": "string"},
        "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
    }
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": fields}}
    person = Person("Answer", "Use John", "Use a, b", "Leave it out", "Large")
    answer, _ = await ask(Client(ask_person=person), form)
    content = {"name": "John", "tags": ["a", "b"], "size": "l"}
    assert answer == {"action": "accept", "content": content}
    assert [question.choices for question in person.asked[1:]] == [
        ("Use John",),
        ("a", "b", "Use a, b"),
        ("Leave it out",),
        ("Small", "Large", "Leave it out"),
    ]


@pytest.mark.parametrize(
    ("answers", "action"),
    [(["Decline"], "decline"), ([None], "cancel"), (["Answer", None], "cancel")],
)
async def test_a_person_may_decline_or_leave(answers: Any, action: str) -> None:
    answer, _ = await ask(Client(ask_person=Person(*answers)))
    assert answer == {"action": action}


async def test_an_address_is_shown_and_only_http_is_an_address() -> None:
    person = Person("I have opened it")
    url = {"mode": "url", "message": "Sign here", "url": "https://example.com/sign"}
    answer, _ = await ask(Client(ask_person=person), url)
    assert answer == {"action": "accept"}
    assert "https://example.com/sign" in person.asked[0].text
    with pytest.raises(RemoteError, match="not an http or https address"):
        await ask(Client(), {**url, "url": "file:///etc/passwd"})


@pytest.mark.parametrize(
    "params", [{}, {"requestedSchema": []}, {"requestedSchema": {"properties": 1}}]
)
async def test_what_is_not_a_form_is_an_error_for_the_server(params: Any) -> None:
    with pytest.raises(RemoteError, match="schema of an object"):
        await ask(Client(), params)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "maybe", None),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "integer"}, "x", None),
        ({"type": "string"}, " kept ", " kept "),
        ({"type": "string", "enum": ["a"]}, "b", None),
        ({"type": "string", "enum": ["a"], "enumNames": ["First"]}, "First", "a"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "First"}]}, "First", "a"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a, b", ["a", "b"]),
    ],
)
def test_what_a_person_types_becomes_a_value_of_the_field(
    field: Any, text: str, value: Any
) -> None:
    assert read_value(field, text) == value
