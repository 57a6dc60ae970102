"""Work that one agent gives to another."""

import msgspec


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task for a sub-agent. The prompt is all the sub-agent knows about it."""

    agent_type: str
    prompt: str
    description: str = ""
    model: str | None = None
    effort: str | None = None
