"""Which turn an event belongs to: a turn begins with what a person sent."""

from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.user import UserMessage
from trimtab.session.record import Record
from trimtab.session.records import read_records


def begins_turn(record: Record) -> bool:
    """Whether a record is the prompt of a person or client, not one the agent gave itself."""
    if record.type != "user.message" or record.agent_id is not None:
        return False
    data = decode(record.line).data
    return not isinstance(data, UserMessage) or data.source in (None, "user")


def count_turns(log: str) -> int:
    """How many turns a session has had."""
    return sum(begins_turn(record) for record in read_records(log))
