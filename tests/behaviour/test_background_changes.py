"""What a command changes in the background is recorded while nothing else happens."""

import asyncio
from pathlib import Path

import pytest

from clikit import bash
from livekit import Watch, opened

LATE = bash("until [ -e go ]; do sleep 0.05; done; echo late > late.txt; sleep 60")
LATE["arguments"] |= {"mode": "async", "shellId": "bg"}


def changed_by(watch: Watch, name: str) -> list[str]:
    """The reasons of the changes of one file."""
    told = watch.of("trimtab.workspace_changed")
    return [one.reason for one in told for change in one.changes if change.path.endswith(name)]


@pytest.mark.proves("AMREC-02")
async def test_a_change_by_a_background_command_is_recorded_within_ten_seconds(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, [{"tools": [LATE]}, "It runs."]) as (live, watch, _):
        await live.ask("go")
        assert live.recorder.scan_interval <= 5  # looking at so small a tree takes next to no time
        (tmp_path / "go").touch()
        async with asyncio.timeout(60):
            while not changed_by(watch, "late.txt"):
                count = len(watch.of("trimtab.workspace_changed"))
                await watch.saw("trimtab.workspace_changed", count + 1)
        assert changed_by(watch, "late.txt") == ["background"]


async def test_looking_ends_with_the_last_background_command(tmp_path: Path) -> None:
    brief = bash("until [ -e go ]; do sleep 0.05; done; touch x")
    brief["arguments"] |= {"mode": "async", "shellId": "bg"}
    async with opened(tmp_path, [{"tools": [brief]}, "It runs."]) as (live, _, _):
        live.recorder.scan_interval = 0.05
        await live.ask("go")
        (task,) = [one for one in asyncio.all_tasks() if "Recorder._watch" in repr(one)]
        (tmp_path / "go").touch()
        async with asyncio.timeout(60):
            await task


async def test_looking_begins_again_with_another_background_command(tmp_path: Path) -> None:
    def wait(number: int) -> dict[str, object]:
        call = bash(f"until [ -e go{number} ]; do sleep 0.05; done; touch x{number}")
        call["arguments"] |= {"mode": "async", "shellId": f"bg{number}"}
        return call

    replies = [{"tools": [wait(1)]}, "It runs.", {"tools": [wait(2)]}, "It runs."]
    async with opened(tmp_path, replies) as (live, _, _):
        live.recorder.scan_interval = 0.05
        for number in (1, 2):
            await live.ask("go")
            (task,) = [one for one in asyncio.all_tasks() if "Recorder._watch" in repr(one)]
            (tmp_path / f"go{number}").touch()
            async with asyncio.timeout(50):
                await task


async def test_one_look_serves_all_background_commands(tmp_path: Path) -> None:
    calls = []
    for number in (1, 2):
        calls.append(bash(f"sleep 60; touch x{number}"))
        calls[-1]["arguments"] |= {"mode": "async", "shellId": f"bg{number}"}
    async with opened(tmp_path, [{"tools": calls}, "They run."]) as (live, _, _):
        await live.ask("go")
        looking = [one for one in asyncio.all_tasks() if "Recorder._watch" in repr(one)]
        assert len(looking) == 1
