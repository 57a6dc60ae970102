"""Links in finished lines: what becomes one, and that no text takes long to search."""

import random
from pathlib import Path

import pytest

from trimtab.transports.tui.links import MAX_LINE, Links

TOKENS = ["a", "0f", "-", ".", "/", "~", "@", "+", "_", ":", "12", " ", "http://", "x.py", "é"]


def linked(folder: Path, text: str) -> list[str]:
    spans = Links(str(folder), str(folder)).mark((("", text),))
    assert "".join(text for _, text in spans) == text
    return [shown for style, shown in spans if "link=" in style]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/app.py:12, and app.md.", ["src/app.py:12", "app.md"]),
        ("see ~/app.md and ./src/app.py!", ["~/app.md", "./src/app.py"]),
        ("https://example.com/a?b=c. Then", ["https://example.com/a?b=c"]),
        ("nothing.here and no/such/file", []),
        ("e.g. app or src", []),
    ],
)
def test_addresses_and_existing_files_are_links(
    tmp_path: Path, text: str, found: list[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    (tmp_path / "app.md").touch()
    assert linked(tmp_path, text) == found


@pytest.mark.parametrize(
    "word",
    ["0123456789abcdef-" * 8, "a." * 500, "@" * 1900, "a/" * 900 + "!", "-" * 1900, "~" * 900],
)
def test_long_words_do_not_hold_the_terminal_up(tmp_path: Path, word: str) -> None:
    """A hash or an id in a line with a dot froze the program for ever."""
    assert linked(tmp_path, f"{word} ends. {word}"[: MAX_LINE - 1]) is not None


def test_random_lines_are_searched_to_their_end(tmp_path: Path) -> None:
    chance = random.Random(17)
    for _ in range(500):
        text = "".join(chance.choices(TOKENS, k=chance.randint(1, 400)))
        linked(tmp_path, text[: MAX_LINE - 1])
