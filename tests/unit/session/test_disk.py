"""Syncs that nobody waits for happen all the same, and share one another."""

import os
import threading
from pathlib import Path

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
