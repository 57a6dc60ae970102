"""Records a session of the terminal with a scripted model, and draws its screens as SVG files."""

import asyncio
import re
import shutil
import sys
import tempfile
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from clikit import Cli, bash, serving
from tuikit import Emulator, Terminal, open_terminal

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 88, 38
COLOURS = {
    "default": "#d8dee9",
    "brightblack": "#7b8494",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
}
CELL, LINE = 8.4, 19
EDIT = {
    "name": "edit",
    "arguments": {
        "path": "prices.py",
        "old_str": "full + full * discount_percent / 100",
        "new_str": "full - full * discount_percent / 100",
    },
}
VIEW = {"name": "view", "arguments": {"path": "prices.py"}}
SCRIPT: list[dict[str, Any]] = [
    {"text": "I will look at the code and run its check.", "tools": [VIEW]},
    {"tools": [bash("python3 check.py")]},
    {
        "text": "The discount is **added** instead of taken off. I will fix that line and run the "
        "check again.",
        "tools": [EDIT],
    },
    {"tools": [bash("python3 check.py")]},
    {
        "text": "Fixed. `total` in `prices.py` added the discount; it now takes it off:\n\n"
        "```python\nreturn full - full * discount_percent / 100\n```\n\nand `check.py` passes."
    },
]


async def record() -> None:
    cli = Cli(Path(tempfile.mkdtemp(prefix="demo-")))
    shutil.copytree(ROOT / "src/trimtab/cli/demo/project", cli.cwd, dirs_exist_ok=True)
    async with (
        serving(SCRIPT) as server,
        open_terminal(cli.use(server), size=(COLUMNS, ROWS)) as terminal,
    ):
        await terminal.ready()
        terminal.type("check.py fails. Find out why and fix prices.py.")
        await terminal.sees("fix prices.py")
        terminal.type("\r")
        await answer(terminal, "python3 check.py")
        await terminal.sees(r"Write \S*prices.py\?")
        await terminal.may_answer()
        draw(terminal, "question")
        terminal.type("y")
        await answer(terminal, "python3 check.py")
        await terminal.shows("passes")
        await terminal.ready()
        draw(terminal, "session")
        terminal.type("/co")
        await terminal.sees("/compact")
        draw(terminal, "commands")


async def answer(terminal: Terminal, command: str) -> None:
    """Allow a command once it may be answered."""
    await terminal.sees(rf"\$ {re.escape(command)}")
    await terminal.may_answer()
    terminal.type("y")
    await terminal.hides("1/y")


def draw(terminal: Terminal, name: str) -> None:
    """Write what is visible as an SVG file. Dim text, which pyte does not know, becomes grey."""
    emulator = Emulator(COLUMNS, ROWS)
    grey = re.sub(rb"\x1b\[2((?:;3)?m)", lambda found: b"\x1b[90" + found[1], terminal.bytes)
    emulator.feed(grey)
    lines = []
    last = max(number for number, line in enumerate(emulator.visible) if line)
    for number in range(last + 1):
        row = emulator.screen.buffer[number]
        cells = [(column, row[column]) for column in range(COLUMNS)]
        for style, run in groupby(cells, key=lambda cell: (cell[1].fg, cell[1].bold)):
            found = list(run)
            text = "".join(cell.data for _, cell in found)
            if text.strip():
                weight = ' font-weight="bold"' if style[1] else ""
                colour = COLOURS.get(style[0], COLOURS["default"])
                lines.append(
                    f'<text x="{12 + found[0][0] * CELL:.1f}" y="{24 + number * LINE}" '
                    f'fill="{colour}"{weight} xml:space="preserve">{escape(text.rstrip())}</text>'
                )
    width, height = 24 + COLUMNS * CELL, 36 + last * LINE
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'font-family="ui-monospace, Menlo, DejaVu Sans Mono, monospace" font-size="14">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1e222a"/>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    asyncio.run(record())
