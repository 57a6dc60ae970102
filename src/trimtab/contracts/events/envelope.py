"""The envelope every event travels in, and the base of the structs that are its data."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import msgspec

JsonObject: TypeAlias = dict[str, Any]


class _EventMeta(msgspec.StructMeta):
    """Takes an event's wire name and whether it is ephemeral from its class statement."""

    wire_name: str
    is_ephemeral: bool

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "_EventMeta":
        wire_name = options.pop("type", "")
        ephemeral = options.pop("ephemeral", False)
        options |= {"frozen": True, "kw_only": True, "rename": "camel", "omit_defaults": True}
        cls = super().__new__(mcls, name, bases, namespace, **options)
        cls.wire_name = wire_name
        cls.is_ephemeral = ephemeral
        return cls


class EventData(msgspec.Struct, metaclass=_EventMeta):
    """The data of an event.

    Python names are snake_case, wire names camelCase; fields left unset are not written.
    """

    wire_name: ClassVar[str]
    is_ephemeral: ClassVar[bool]


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing that happened in a session: the unit that is stored, folded, printed and sent.

    `data` is the struct of the type, or a plain dict when the type is not ours or the fields do
    not fit it. `parent_id` is the id of the durable event before this one.
    """

    type: str
    data: Any
    id: str
    timestamp: str
    parent_id: str | None
    ephemeral: bool = False
    agent_id: str | None = None


Subscriber = Callable[[Event, bytes], None]
"""Receives every event and the line it is stored as."""
