"""How instructions of people and lists of skills are written into the prompt."""

from collections.abc import Sequence

LONGEST_LIST = 16_000
"""Characters of the list of skills; what does not fit is counted, not listed."""
SHORT = 160
"""Characters of a description where the list would be too long with whole ones."""


def render_instruction(text: str, names: Sequence[str]) -> str:
    """One instruction in its element, with the files it comes from."""
    safe = text.replace("</custom_instruction", "<\\/custom_instruction")
    return f"<custom_instruction>\nFrom {', '.join(names)}:\n\n{safe}\n</custom_instruction>"


def list_skills(skills: Sequence[tuple[str, str]]) -> str:
    """Name and description of each, a line each."""
    lines = [f"- {name}: {description}" for name, description in skills]
    if sum(map(len, lines)) > LONGEST_LIST:
        lines = [line[:SHORT] for line in lines]
    shown: list[str] = []
    room = LONGEST_LIST
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            shown.append(f"… and {len(lines) - len(shown)} more that are not listed")
            break
        shown.append(line)
    return "\n".join(shown)
