"""The installed program loads its modules from one file from the second start on."""

import os
from pathlib import Path

from clikit import Cli, serving


def find_cache(folder: Path) -> Path:
    (cache,) = folder.rglob("modules.cpython-*")
    return cache


async def test_the_first_start_writes_the_modules_and_the_next_one_loads_them(
    tmp_path: Path,
) -> None:
    compiled = tmp_path / "compiled"
    async with serving([{"text": "Done.", "repeat": 3}]) as server:
        cli = Cli(tmp_path / "user").use(server)
        env = {"PYTHONPYCACHEPREFIX": str(compiled)}
        first = await cli.ask("hello", env=env)
        assert first.result["status"] == "success"
        cache = find_cache(compiled)
        written = cache.stat().st_mtime_ns
        for file in compiled.rglob("asyncio/*.pyc"):
            file.unlink()
        second = await cli.ask("hello", env=env)
        assert second.result["status"] == "success"
        assert not list(compiled.rglob("asyncio/*.pyc")), "Python compiled what the cache has"
        assert cache.stat().st_mtime_ns == written


async def test_a_damaged_file_of_modules_changes_nothing_but_the_time(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    async with serving([{"text": "Done.", "repeat": 3}]) as server:
        cli = Cli(tmp_path / "user").use(server)
        env = {"PYTHONPYCACHEPREFIX": str(compiled)}
        await cli.ask("hello", env=env)
        cache = find_cache(compiled)
        size = cache.stat().st_size
        os.truncate(cache, size // 2)
        second = await cli.ask("hello", env=env)
        assert second.result["status"] == "success"
        assert not second.notes
        assert find_cache(compiled).stat().st_size == size
