"""Programs that stand in for those of runtimes, and what they were given."""

import json
import sys
from pathlib import Path
from typing import Any

from clikit import Cli, Outcome
from programkit import FOREIGN

STAND_IN = Path(__file__).parent / "fixtures" / "runtimes" / "stand_in.py"
NAMES = ("claude", "codex", "copilot", "opencode", "gemini", "pi")
PROGRAMS = {
    "claude": "claude-code",
    "codex": "codex",
    "copilot": "copilot",
    "opencode": "opencode",
    "gemini": "gemini",
    "pi": "pi",
}
"""The folder of each real program in `.foreign`."""


class StandIns:
    """Programs on the PATH of a `Cli` that follow a plan."""

    def __init__(self, cli: Cli, *names: str) -> None:
        self.cli = cli
        self.folder = cli.home.parent / "bin"
        self.folder.mkdir()
        for name in names or NAMES:
            path = self.folder / name
            path.write_text(f"#!{sys.executable} -ISs\n{STAND_IN.read_text()}")
            path.chmod(0o755)
        self.plan_file = cli.home.parent / "plan.json"
        cli.env |= {
            "PATH": f"{self.folder}:{cli.env['PATH']}",
            "STANDIN": str(self.plan_file),
        }
        self.plan()

    def plan(self, *steps: Any, **others: Any) -> None:
        """Say what the programs do from now on."""
        self.plan_file.write_text(json.dumps({"steps": steps or ["Done."], **others}))

    @property
    def got(self) -> list[dict[str, Any]]:
        """What the programs were given, run by run."""
        found = self.cli.home.parent.rglob("stand-in-sessions.got")
        return [json.loads(line) for path in found for line in path.read_text().splitlines()]

    @property
    def sessions(self) -> list[Path]:
        """The sessions that the programs keep themselves."""
        found = self.cli.home.parent.rglob("stand-in-sessions")
        return [session for folder in found for session in folder.iterdir()]

    async def ask(self, runtime: str, *flags: str, prompt: str = "do it") -> Outcome:
        """Run one prompt and print the events."""
        return await self.cli.run(
            "-p", prompt, "--agent-runtime", runtime, "--output-format", "json", *flags
        )


def use_real(cli: Cli, *names: str) -> None:
    """Put the fetched programs on the PATH."""
    folders = [str(FOREIGN / PROGRAMS[name] / "node_modules" / ".bin") for name in names]
    cli.env["PATH"] = ":".join([*folders, cli.env["PATH"]])


def logged(cli: Cli, wire_name: str) -> list[dict[str, Any]]:
    """Return the data of all stored events of a type, of all sessions."""
    lines = [line for path in cli.logs() for line in path.read_text().splitlines()]
    events = map(json.loads, lines)
    return [event["data"] for event in events if event["type"] == wire_name]
