"""Recorded sessions played again, and what they are expected to come to.

`python tests/scenariokit.py` compares; with `--update` it writes what is expected from now on.

A scenario is a folder in `tests/scenarios`: `recorded.jsonl` is the log of a session, `files` what
its folder held at the start, `scenario.json` how it is run, `expected.jsonl` its durable events and
the files at the end, without what differs from run to run.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trimtab.contracts.options import PermissionOptions
from trimtab.session.records import read_records
from trimtab.session.transcript import plain_event
from trimtab.testing import Played, play, recorded_script
from trimtab.testing.playing import ALLOW_ALL

FOLDER = Path(__file__).parent / "scenarios"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/recorded.jsonl"))
VARYING = re.compile(r"tokens|duration|ms$|aiu|^mode$|size|length$|time$", re.IGNORECASE)
"""Fields whose numbers depend on the clock, the umask or the texts of prompts."""
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?")


async def replay(name: str) -> list[str]:
    """What a scenario comes to now: lines of JSON."""
    place = Path(tempfile.mkdtemp(prefix="trimtab-scenario-"))
    cwd, home = place / "project", place / "home"
    home.mkdir()
    try:
        if (FOLDER / name / "files").is_dir():
            shutil.copytree(FOLDER / name / "files", cwd)
        else:
            cwd.mkdir()
        recorded = str(FOLDER / name / "recorded.jsonl")
        options = json.loads((FOLDER / name / "scenario.json").read_text())
        allowed = options.pop("allowAll")
        played = await play(
            recorded_script(recorded),
            *prompts_of(recorded),
            cwd=str(cwd),
            home=str(home),
            permissions=ALLOW_ALL if allowed else PermissionOptions(),
            **options,
        )
        names = {str(cwd): "<project>", str(home): "<home>"}
        lines = [*events_of(played, names), {"files": files_in(cwd)}]
        return [json.dumps(line, ensure_ascii=False) for line in lines]
    finally:
        shutil.rmtree(place)


def prompts_of(log: str) -> list[str]:
    """What the person said; what hooks and autopilot put in between comes by itself."""
    said = [one.line for one in read_records(log) if one.type == "user.message"]
    found = [plain_event(line)["data"] for line in said]
    return [one["content"] for one in found if one.get("source") in (None, "user")]


def events_of(played: Played, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    for event, line in zip(played.events, played.lines, strict=True):
        if not event.ephemeral:
            data = json.loads(line)["data"]
            if event.type == "system.message":
                data = {"content": "<system prompt>"}
            yield {"type": event.type, "data": settle(data, names)}


def settle(value: Any, names: dict[str, str], field: str = "") -> Any:
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: settle(one, names, key) for key, one in value.items()}
    if isinstance(value, list):
        return [settle(one, names, field) for one in value]
    if isinstance(value, str):
        for path, shown in names.items():
            value = value.replace(path, shown)
        value = TIMES.sub("<time>", IDS.sub("<id>", value))
        return "<version>" if field == "copilotVersion" else value
    if isinstance(value, int | float) and not isinstance(value, bool) and VARYING.search(field):
        return 0
    return value


def files_in(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in found}


def expected(name: str) -> list[str]:
    return (FOLDER / name / "expected.jsonl").read_text().splitlines()


async def main(update: bool) -> int:
    differing = 0
    for name in NAMES:
        lines = await replay(name)
        if update:
            (FOLDER / name / "expected.jsonl").write_text("\n".join(lines) + "\n")
        elif lines != expected(name):
            differing += 1
            sys.stdout.write(f"{name} differs\n")
    sys.stdout.write(f"{len(NAMES)} scenarios, {differing} differ\n")
    return os.EX_OK if not differing else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main("--update" in sys.argv[1:])))
