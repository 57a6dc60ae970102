"""Scenarios: recorded sessions that are played again, and what they are expected to come to.

A scenario is a folder:

- `scenario.json` says how it is run: `prompts`, `mode`, `allowAll`, `allow`, `deny`.
- `recorded.jsonl` is the log of a session whose replies the model gives again, or `answers.yaml`
  (`answers.json`) is a script of replies. Without `prompts`, those of the log are sent.
- `files` are the files of the working directory before, `after` the files that are expected then.
- `expected.jsonl` are the stored events, without what differs from run to run.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.agent import Mode
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.options import PermissionOptions
from trimtab.providers.script import Script
from trimtab.session.records import read_records
from trimtab.session.transcript import plain_event
from trimtab.testing.playing import ALLOW_ALL, Played, play
from trimtab.testing.recording import recorded_script

SETTINGS = "scenario.json"
RECORDED = "recorded.jsonl"
ANSWERS = ("answers.yaml", "answers.json")
EXPECTED = "expected.jsonl"
BEFORE = "files"
AFTER = "after"
SECONDS = 300.0
"""The longest time of one scenario."""
MAX_DEPTH = 5
VARYING = re.compile(r"tokens|duration|ms$|aiu|^mode$|size|length$|time$", re.IGNORECASE)
"""Fields whose numbers depend on the clock, the umask or the texts of prompts."""
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?")


class ScenarioSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The file `scenario.json`."""

    prompts: tuple[str, ...] = ()
    mode: Mode = "interactive"
    allow_all: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The stored events of a scenario as lines of JSON, and its files by path."""

    events: list[str]
    files: Mapping[str, bytes]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario on disk."""

    path: Path
    settings: ScenarioSettings

    @property
    def name(self) -> str:
        return self.path.name

    def read_expected(self) -> Outcome | None:
        """Return what is expected; None if that was never written."""
        events = self.path / EXPECTED
        if not events.is_file():
            return None
        lines = events.read_text(encoding="utf-8").splitlines()
        return Outcome(events=lines, files=read_files(self.path / AFTER))

    def write_expected(self, outcome: Outcome) -> None:
        """Accept an outcome as what is expected from now on."""
        lines = "".join(f"{line}\n" for line in outcome.events)
        replace_file(str(self.path / EXPECTED), lines.encode(), 0o644)
        after = self.path / AFTER
        if after.is_dir():
            shutil.rmtree(after)
        for name, data in outcome.files.items():
            target = after / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def find_scenarios(paths: Sequence[str]) -> list[Scenario]:
    """Return the scenarios in folders, in order. Raises `UsageError` if there is none."""
    found: dict[Path, Scenario] = {}
    for path in paths:
        folder = Path(path)
        if not folder.is_dir():
            raise UsageError(f"no such directory: {path}; name a scenario or a folder of them.")
        inside = [load_scenario(place) for place in _find_folders(folder.resolve(), MAX_DEPTH)]
        if not inside:
            raise UsageError(
                f"{path} contains no scenario, which is a folder with {SETTINGS}; name another one."
            )
        found |= {scenario.path: scenario for scenario in inside}
    return list(found.values())


def _find_folders(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / SETTINGS).is_file():
        yield folder
    elif depth:
        for child in sorted(folder.iterdir()):
            if child.is_dir() and not child.is_symlink() and not child.name.startswith("."):
                yield from _find_folders(child, depth - 1)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario. Raises `UsageError` that says what is wrong with it."""
    try:
        settings = msgspec.json.decode((path / SETTINGS).read_bytes(), type=ScenarioSettings)
    except (msgspec.DecodeError, OSError) as error:
        raise UsageError(f"{path / SETTINGS} cannot be used: {error}; correct it.") from None
    scenario = Scenario(path=path, settings=settings)
    if _find_answers(path) is None:
        raise UsageError(f"{path} has no answers: add {RECORDED} or {ANSWERS[0]}.")
    if not _find_prompts(scenario):
        raise UsageError(f"{path} has no prompt: add `prompts` to {SETTINGS}.")
    return scenario


def _find_answers(path: Path) -> Path | None:
    names = (RECORDED, *ANSWERS)
    return next((path / name for name in names if (path / name).is_file()), None)


def _find_prompts(scenario: Scenario) -> Sequence[str]:
    """Return the prompts to send: those of the settings, else those of the person in the log."""
    log = scenario.path / RECORDED
    if scenario.settings.prompts or not log.is_file():
        return scenario.settings.prompts
    said = [record.line for record in read_records(str(log)) if record.type == "user.message"]
    found = [plain_event(line)["data"] for line in said]
    return [data["content"] for data in found if data.get("source") in (None, "user")]


def _load_answers(path: Path) -> Script:
    answers = _find_answers(path)
    assert answers is not None
    if answers.name == RECORDED:
        return recorded_script(str(answers))
    return Script.load(str(answers))


async def run_scenario(scenario: Scenario) -> Outcome:
    """Play a scenario in a folder of its own, with nothing but the recorded answers."""
    place = Path(tempfile.mkdtemp(prefix="trimtab-scenario-"))
    cwd, home = place / "project", place / "home"
    home.mkdir()
    try:
        if (scenario.path / BEFORE).is_dir():
            shutil.copytree(scenario.path / BEFORE, cwd, symlinks=True)
        else:
            cwd.mkdir()
        settings = scenario.settings
        permissions = PermissionOptions(allow=settings.allow, deny=settings.deny)
        async with asyncio.timeout(SECONDS):
            played = await play(
                _load_answers(scenario.path),
                *_find_prompts(scenario),
                cwd=str(cwd),
                home=str(home),
                mode=settings.mode,
                offline=True,
                permissions=ALLOW_ALL if settings.allow_all else permissions,
            )
        names = {str(cwd): "<project>", str(home): "<home>"}
        events = [msgspec.json.encode(event).decode() for event in settle_events(played, names)]
        return Outcome(events=events, files=read_files(cwd))
    finally:
        shutil.rmtree(place)


async def run_all(
    scenarios: Sequence[Scenario], at_once: int
) -> AsyncIterator[tuple[Scenario, Outcome | str]]:
    """Yield the outcome of each scenario, in order, or why it could not be played."""
    gate = asyncio.Semaphore(at_once)

    async def run(scenario: Scenario) -> Outcome | str:
        async with gate:
            try:
                return await run_scenario(scenario)
            except TrimtabError as error:
                return error.message
            except TimeoutError:
                return f"it did not end within {SECONDS:.0f} s"

    tasks = [asyncio.create_task(run(scenario)) for scenario in scenarios]
    try:
        for scenario, task in zip(scenarios, tasks, strict=True):
            yield scenario, await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def settle_events(played: Played, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the stored events without what differs from run to run."""
    for event, line in zip(played.events, played.lines, strict=True):
        if not event.ephemeral:
            data = msgspec.json.decode(line)["data"]
            if event.type == "system.message":
                data = {"content": "<system prompt>"}
            yield {"type": event.type, "data": settle(data, names)}


def settle(value: Any, names: Mapping[str, str], field: str = "") -> Any:
    """Return a value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: settle(inner, names, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [settle(inner, names, field) for inner in value]
    if isinstance(value, str):
        for path, shown in names.items():
            value = value.replace(path, shown)
        value = TIMES.sub("<time>", IDS.sub("<id>", value))
        return "<version>" if field == "copilotVersion" else value
    if isinstance(value, int | float) and not isinstance(value, bool) and VARYING.search(field):
        return 0
    return value


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, by path."""
    if not folder.is_dir():
        return {}
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in found}
