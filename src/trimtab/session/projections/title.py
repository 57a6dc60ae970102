"""The title of a session, made from its first prompt."""

import re
from typing import ClassVar

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.user import UserMessage

LENGTH = 60


class Title:
    """The first line of the first prompt, without the tags that tools put around it."""

    reads: ClassVar[frozenset[str]] = frozenset(("user.message",))

    def __init__(self) -> None:
        self.text = ""

    def apply(self, event: Event) -> None:
        if self.text or event.agent_id is not None or not isinstance(event.data, UserMessage):
            return
        if event.data.source is None:  # not a prompt of a hook or tool
            self.text = title_of(event.data.content)


def title_of(prompt: str) -> str:
    """Return the first line with text, shortened at a word."""
    lines = (_without_tags(prompt) if "<" in prompt else prompt).split("\n")
    line = next((" ".join(line.split()) for line in lines if line.strip()), "")
    if len(line) <= LENGTH:
        return line
    return line[: LENGTH - 1].rsplit(" ", 1)[0] + "…"


def _without_tags(prompt: str) -> str:

    without_blocks = re.sub(r"<(\w[\w-]*)[^>]*>.*?</\1>", " ", prompt, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", without_blocks)
