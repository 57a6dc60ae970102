"""Hook files for tests, and what hooks of a run said."""

import json
from pathlib import Path
from typing import Any

from clikit import Cli, Outcome

RECORD = "cat > {name}.json"
"""A command that keeps its input."""


def write_hooks(cli: Cli, hooks: dict[str, Any], where: str = "repository") -> Path:
    """Put hooks into the repository of a run, or where its person keeps theirs."""
    folder = cli.cwd / ".github/hooks" if where == "repository" else cli.home / "hooks"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "hooks.json"
    file.write_text(json.dumps({"version": 1, "hooks": hooks}, indent=2))
    return file


def saying(output: Any) -> dict[str, str]:
    """A hook that prints this, whatever it is asked."""
    return {"type": "command", "bash": f"cat > /dev/null; echo '{json.dumps(output)}'"}


def keeping(name: str) -> dict[str, str]:
    """A hook that keeps its input and says nothing."""
    return {"type": "command", "bash": f"cat > $HOME/{name}.json"}


def kept(cli: Cli, name: str) -> Any:
    return json.loads((Path(cli.env["HOME"]) / f"{name}.json").read_text())


def stored(cli: Cli, wire_name: str) -> list[Any]:
    """The data of all events of a type in the last log; hook events are only there."""
    lines = [json.loads(line) for line in cli.logs()[-1].read_text().split("\n") if line]
    return [line["data"] for line in lines if line["type"] == wire_name]


def tool_errors(outcome: Outcome) -> list[str]:
    """Return the errors of unsuccessful tool calls."""
    ends = outcome.of("tool.execution_complete")
    return [end["error"]["message"] for end in ends if not end["success"]]
