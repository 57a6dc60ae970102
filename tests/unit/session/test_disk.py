"""Syncs that nobody waits for happen all the same, and share one another."""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.errors import StorageError, TrimtabError
from trimtab.session.disk import DiskSync


class Disk:
    """Counts syncs, and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.synced = threading.Semaphore(0)

    def sync(self, _fd: int) -> None:
        self.count += 1
        self.synced.release()


def test_every_request_is_answered_by_a_later_sync(tmp_path: Path) -> None:
    disk, size = Disk(), [0]
    fd = os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR)
    syncing = DiskSync(fd, "log", lambda: size[0], sync=disk.sync)
    for appended in (10, 20, 30):
        size[0] = appended
        syncing.request()
        assert disk.synced.acquire(timeout=50), f"nothing was synced at {appended}"
    syncing.finish()
    os.close(fd)
    assert disk.count == 3


def test_requests_in_the_same_moment_share_one_sync(tmp_path: Path) -> None:
    disk = Disk()
    fd = os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR)
    syncing = DiskSync(fd, "log", lambda: 10, sync=disk.sync)
    for _ in range(100):
        syncing.request()
    assert disk.synced.acquire(timeout=50)
    syncing.finish()
    os.close(fd)
    assert disk.count == 1


class Failing:
    """A disk whose syncs fail with an error, and that counts them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def sync(self, _fd: int) -> None:
        self.count += 1
        raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(("done", "count"), [(10, 0), (11, 0), (9, 1), (0, 1)])
def test_nothing_is_synced_that_is_on_the_disk_already(fd: int, done: int, count: int) -> None:
    disk = Disk()
    syncing = DiskSync(fd, "log", lambda: 10, done=done, sync=disk.sync)
    syncing.request()
    waits = any(thread.name == "log-sync" for thread in threading.enumerate())
    assert waits == bool(count)
    asyncio.run(syncing.wait())
    syncing.finish()
    syncing.finish()
    assert disk.count == count
    assert not any(thread.name == "log-sync" for thread in threading.enumerate())


def test_what_nobody_asked_for_is_synced_at_the_end(fd: int) -> None:
    disk = Disk()
    DiskSync(fd, "log", lambda: 1, sync=disk.sync).finish()
    assert disk.count == 1


def test_folders_are_synced_once_even_if_the_log_is_empty(fd: int, tmp_path: Path) -> None:
    disk = Disk()
    syncing = DiskSync(fd, "log", lambda: 0, sync=disk.sync)
    syncing.sync_folders(str(tmp_path))
    asyncio.run(syncing.wait())
    assert disk.count == 1
    asyncio.run(syncing.wait())
    syncing.request()
    syncing.finish()
    assert disk.count == 1


def test_a_folder_that_cannot_be_synced_is_a_failure_of_the_log(fd: int, tmp_path: Path) -> None:
    syncing = DiskSync(fd, "log", lambda: 10)
    syncing.sync_folders(str(tmp_path / "nowhere"))
    with pytest.raises(TrimtabError, match="Cannot save log"):
        asyncio.run(syncing.wait())
    with pytest.raises(TrimtabError, match="Cannot save log"):
        syncing.finish()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_is_no_failure(fd: int, number: int) -> None:
    disk = Failing(number)
    syncing = DiskSync(fd, "log", lambda: 10, sync=disk.sync)
    asyncio.run(syncing.wait())
    asyncio.run(syncing.wait())
    syncing.finish()
    assert disk.count == 1


def test_after_a_failure_nothing_is_synced_again(fd: int) -> None:
    disk, size = Failing(errno.EIO), [10]
    syncing = DiskSync(fd, "log", lambda: size[0], sync=disk.sync)
    with pytest.raises(StorageError, match="Cannot save log"):
        asyncio.run(syncing.wait())
    size[0] = 20
    syncing.request()
    with pytest.raises(StorageError, match="Cannot save log"):
        asyncio.run(syncing.wait())
    with pytest.raises(StorageError, match="Cannot save log"):
        syncing.finish()
    assert disk.count == 1


async def test_everybody_who_waits_is_told_of_a_failure(fd: int) -> None:
    syncing = DiskSync(fd, "log", lambda: 10, sync=Failing(errno.EIO).sync)
    async with asyncio.timeout(50):
        results = await asyncio.gather(*[syncing.wait() for _ in range(3)], return_exceptions=True)
    assert [type(result) for result in results] == [StorageError] * 3
    with pytest.raises(StorageError):
        syncing.finish()


async def test_who_waits_for_less_is_not_kept_by_who_waits_for_more(fd: int) -> None:
    size, begun, free = [10], threading.Semaphore(0), threading.Semaphore(0)

    def sync(_fd: int) -> None:
        begun.release()
        assert free.acquire(timeout=50)

    syncing = DiskSync(fd, "log", lambda: size[0], sync=sync)
    first = asyncio.ensure_future(syncing.wait())
    await asyncio.sleep(0)
    assert await asyncio.to_thread(begun.acquire, timeout=50)
    size[0] = 20
    second = asyncio.ensure_future(syncing.wait())
    await asyncio.sleep(0)
    free.release()
    async with asyncio.timeout(50):
        await first
    assert await asyncio.to_thread(begun.acquire, timeout=50)
    assert not second.done()
    free.release()
    async with asyncio.timeout(50):
        await second
    syncing.finish()


def test_a_deleted_file_is_a_failure(fd: int, tmp_path: Path) -> None:
    (tmp_path / "log").unlink()
    syncing = DiskSync(fd, "the log", lambda: 10, sync=Disk().sync)
    with pytest.raises(StorageError, match="the log was deleted while the session was in use"):
        syncing.finish()
