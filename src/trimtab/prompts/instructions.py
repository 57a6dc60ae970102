"""How instructions of people and lists of skills are written into the prompt."""

from collections.abc import Sequence

from trimtab.contracts.text import count

LONGEST_LIST = 16_000
"""Characters of the list of skills; what does not fit is counted, not listed."""
WINDOW_SHARE = 16
"""The part of a small window that the list may take."""
INSTRUCTIONS_SHARE = 2
"""The part of a window that instructions may take. A token is four characters."""
CUT = "[The rest is left out, as there is no room for it: read the file when you need it.]"
SHORT = 160
"""Characters of a description where the list would be too long with whole ones."""


def render_instruction(text: str, names: Sequence[str]) -> str:
    """One instruction in its element, with the files it comes from."""
    safe = text.replace("</custom_instruction", "<\\/custom_instruction")
    return f"<custom_instruction>\nFrom {', '.join(names)}:\n\n{safe}\n</custom_instruction>"


def fit_instructions(texts: Sequence[str], window: int) -> list[str]:
    """The texts, the longest of them cut where all would take more than half of a window."""
    room = window * 4 // INSTRUCTIONS_SHARE
    if sum(map(len, texts)) <= room:
        return list(texts)
    most = 0
    for left, text in zip(range(len(texts), 0, -1), sorted(texts, key=len), strict=True):
        most = room // left  # what each of those may have that are at least as long as this one
        if len(text) > most:
            break
        room -= len(text)
    return [text if len(text) <= most else f"{text[:most]}\n{CUT}" for text in texts]


def list_skills(skills: Sequence[tuple[str, str]], window: int = 0) -> str:
    """Name and description of each, a line each; less in a small window, counted in tokens."""
    room = min(LONGEST_LIST, window * 4 // WINDOW_SHARE) if window else LONGEST_LIST
    lines = [f"- {name}: {description}" for name, description in skills]
    if sum(map(len, lines)) > room:
        lines = [line[:SHORT] for line in lines]
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            left = count(len(lines) - len(shown), "more skill")
            shown.append(
                f"- {left} not listed: call the skill tool with a few words of the task, and it "
                "names those that have them"
            )
            break
        shown.append(line)
    return "\n".join(shown)
