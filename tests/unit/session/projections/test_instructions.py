"""Instructions that a session was told once."""

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.user import UserMessage
from trimtab.session.projections.instructions import SentInstructions


def test_only_instructions_are_remembered() -> None:
    sent = SentInstructions()
    for text, source in (
        ("a", "jit-instruction"),
        ("b", None),
        ("c", "user"),
        ("a", "jit-instruction"),
    ):
        data = UserMessage(content=text, source=source)
        sent.apply(Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None))
    assert sent.texts == {"a"}
