"""Work that one agent gives to another."""

import msgspec


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, and by what kind of agent. The prompt is all the other agent knows."""

    agent_type: str
    prompt: str
    description: str = ""
    model: str | None = None
    effort: str | None = None
