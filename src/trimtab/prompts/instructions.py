"""Renders custom instructions and the list of skills for the prompt."""

from collections.abc import Sequence

from trimtab.contracts.text import count

MAX_LIST_LENGTH = 16_000
"""The length in characters of the list of skills; those that do not fit are counted."""
LIST_SHARE = 16
"""The list may use one part in this many of the window."""
INSTRUCTIONS_SHARE = 2
"""Instructions may use one part in this many of the window."""
CHARACTERS_PER_TOKEN = 4
CUT = "[The rest is left out for lack of room: read the file when you need it.]"
SHORT_LINE = 160
"""The length of a line in the list if it would be too long with whole descriptions."""


def render_instruction(text: str, names: Sequence[str]) -> str:
    """Return an instruction as an element that names the files it comes from."""
    safe = text.replace("</custom_instruction", "<\\/custom_instruction")
    return f"<custom_instruction>\nFrom {', '.join(names)}:\n\n{safe}\n</custom_instruction>"


def fit_instructions(texts: Sequence[str], window: int) -> list[str]:
    """Cut the longest texts if all together would use more than half of the window."""
    room = window * CHARACTERS_PER_TOKEN // INSTRUCTIONS_SHARE
    if sum(map(len, texts)) <= room:
        return list(texts)
    share = 0
    for left, text in zip(range(len(texts), 0, -1), sorted(texts, key=len), strict=True):
        share = room // left  # the room for each text that is at least as long as this one
        if len(text) > share:
            break
        room -= len(text)
    return [text if len(text) <= share else f"{text[:share]}\n{CUT}" for text in texts]


def list_skills(skills: Sequence[tuple[str, str]], window: int = 0) -> str:
    """Return a line with name and description for each skill that fits into the window."""
    room = MAX_LIST_LENGTH
    if window:
        room = min(room, window * CHARACTERS_PER_TOKEN // LIST_SHARE)
    lines = [f"- {name}: {description}" for name, description in skills]
    if sum(map(len, lines)) > room:
        lines = [line[:SHORT_LINE] for line in lines]
    listed: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            left = count(len(lines) - len(listed), "more skill")
            listed.append(
                f"- {left} not listed: call the skill tool with a few words of the task to find "
                "those that match"
            )
            break
        listed.append(line)
    return "\n".join(listed)
