"""Mounts that are made once for many fenced commands, and again when they no longer fit."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from toolkit import Bench, open_bench
from trimtab.contracts.workspace import Command
from trimtab.workspace.sandbox.fence import Fence
from trimtab.workspace.sandbox.fence_policy import build_fence_policy
from trimtab.workspace.sandbox.prepared_mounts import identify

pytestmark = [
    pytest.mark.needs("bubblewrap"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount: run the tests as root"),
]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        opened.write("known.txt", "known\n")
        yield opened


def build_fence(bench: Bench, denied: Sequence[str] = (), readable: str = "") -> Fence:
    policy = build_fence_policy(
        cwd=str(bench.root),
        readable=(readable or str(bench.root),),
        untrusted=(str(bench.root),),
        denied=[str(bench.root / name) for name in denied],
        env=bench.workspace.child_env,
        temp=f"{bench.files}/temp",
    )
    return Fence("bubblewrap", policy, shutil.which("bwrap") or "")


async def run(bench: Bench, fence: Fence, text: str) -> str:
    bench.workspace.shells.fence = fence
    command = Command(text=text, fenced=True)
    state = await bench.workspace.shells.execute(command, wait=50, limit=100_000)
    return state.output.decode()


async def call(*words: str) -> None:
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == 0


async def test_mounts_are_made_once(bench: Bench) -> None:
    fence = build_fence(bench)
    text = await run(bench, fence, "stat -c %i /dev")
    bench.write("new.txt", "new\n")
    assert await run(bench, fence, "stat -c %i /dev; cat new.txt") == f"{text}new\n"
    assert len(os.listdir(fence.policy.temp)) == 1
    fence.close()
    assert os.listdir(fence.policy.temp) == []
    assert await run(bench, fence, "cat new.txt") == "new\n"


async def test_a_covered_file_that_is_replaced_stays_covered(bench: Bench) -> None:
    bench.write(".env", "s3cret\n")
    fence = build_fence(bench, [".env"])
    assert "s3cret" not in await run(bench, fence, "cat .env")
    bench.write("next", "s3cret too\n")
    os.replace(bench.root / "next", bench.root / ".env")
    text = await run(bench, fence, "cat .env")
    assert "s3cret" not in text
    assert "Permission denied" in text


async def test_a_file_that_is_replaced_shows_its_new_contents(bench: Bench) -> None:
    single = bench.root / "single"
    single.write_text("old\n")
    fence = build_fence(bench, readable=str(single))
    assert "old" in await run(bench, fence, f"cat {single}")
    (bench.root / "next").write_text("new\n")
    os.replace(bench.root / "next", single)
    assert "new" in await run(bench, fence, f"cat {single}")


async def test_what_is_mounted_meanwhile_is_seen_and_cannot_be_written(bench: Bench) -> None:
    fence = build_fence(bench)
    await run(bench, fence, "true")
    disk = bench.root / "disk"
    disk.mkdir()
    await call("mount", "-t", "tmpfs", "none", str(disk))
    try:
        (disk / "file").write_text("mounted\n")
        text = await run(bench, fence, "cat disk/file; echo x > disk/file; echo x > disk/new")
        assert text.startswith("mounted\n")
        assert text.count("Read-only file system") == 2
        assert os.listdir(disk) == ["file"]
    finally:
        await call("umount", str(disk))


@pytest.mark.parametrize("place", ["/made", "/dev/made", "/etc/made", "/proc/sys/kernel/hostname"])
async def test_nothing_is_made_outside_the_temp_folder(bench: Bench, place: str) -> None:
    text = await run(bench, build_fence(bench), f"echo x > {place}")
    assert "Read-only file system" in text or "Permission denied" in text


async def test_no_program_of_workspace_or_temp_folder_is_executed(bench: Bench) -> None:
    bench.write("program", "#!/bin/sh\necho executed\n")
    (bench.root / "program").chmod(0o755)
    fence = build_fence(bench)
    text = await run(bench, fence, './program; cp program "$TMPDIR/p"; "$TMPDIR/p"')
    assert text.count("Permission denied") == 2
    assert "executed\n" not in text


async def test_devices_work_and_hold_nothing_else(bench: Bench) -> None:
    text = await run(
        bench,
        build_fence(bench),
        "echo x > /dev/null; head -c 2 /dev/zero | od -An -tx1; head -c 9 /dev/random | wc -c; "
        "cat <(echo piped); echo said > /dev/stderr; ls /dev | tr '\\n' ' '",
    )
    assert text == " 00 00\n9\npiped\nsaid\nfd null random stderr stdin stdout tty urandom zero "


def test_a_file_is_known_by_its_last_change_and_a_folder_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a")
    before = identify(str(file)), identify(str(tmp_path))
    file.chmod(0o600)
    (tmp_path / "more").touch()
    after = identify(str(file)), identify(str(tmp_path))
    assert before[0] != after[0]
    assert before[1] == after[1]
    assert identify(str(tmp_path / "missing")) is None
