"""What an MCP server whose tools are known costs the start: time to the first request."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import TimedServer, spawn

from trimtab.testing import Script

ROUNDS = 15
LIMIT = 1.1
"""The time to the first request with a known server, as a multiple of that without servers."""
SERVER = Path(__file__).parents[1] / "tests" / "mcpserver.py"
Row = Callable[..., None]


async def measure_servers(trimtab: Path, server: TimedServer, row: Row) -> None:
    """The shortest of several starts without a server and with one, measured in turn."""
    base = Path(tempfile.mkdtemp(prefix="trimtab-bench-mcp-"))
    try:
        homes = [base / "without", base / "with"]
        for home in homes:
            home.mkdir()
        entry = {"command": sys.executable, "args": ["-S", "-E", str(SERVER)]}
        config = json.dumps({"mcpServers": {"small": entry}})
        (homes[1] / "mcp-config.json").write_text(config)
        argv: list[str | Path] = [trimtab, "-C", base, "-p", "hi", "--output-format", "json"]

        async def start(home: Path) -> float:
            server.load(Script.of([{"text": "Done."}]))
            return (await spawn(argv, server, COPILOT_HOME=str(home))).to_first

        await start(homes[1])  # its tools are known from here on
        times = [[await start(home) for home in homes] for _ in range(ROUNDS)]
        without, known = (min(column) for column in zip(*times, strict=True))
        row("first request with one known MCP server, ms", known, without)
        row("  as a multiple of that without servers", known / without, None, LIMIT)
    finally:
        shutil.rmtree(base)
