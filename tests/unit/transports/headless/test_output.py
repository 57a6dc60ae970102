"""Writers of descriptors that may be the same file."""

import asyncio
import os
import pty
from pathlib import Path

from trimtab.transports.headless.output import open_outputs


async def test_two_descriptors_of_one_terminal_keep_the_order_of_what_is_written() -> None:
    master, terminal = pty.openpty()
    other = os.dup(terminal)
    try:
        answer, notes = open_outputs(terminal, other)
        notes.write(b"1")
        answer.write(b"2")
        await asyncio.sleep(0)
        answer.write(b"3")
        notes.write(b"4")
        answer.write(b"5")
        assert await notes.drain(5)
        shown = b""
        while len(shown) < 5:  # a terminal delivers two writes together or one after the other
            shown += os.read(master, 100)
        assert shown == b"12345"
    finally:
        for fd in (master, terminal, other):
            os.close(fd)


def test_two_files_have_a_writer_each(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as first, (tmp_path / "b").open("wb") as second:
        answer, notes = open_outputs(first.fileno(), second.fileno())
        assert answer is not notes


def test_a_closed_descriptor_has_a_writer_that_reports_it() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    (output,) = open_outputs(writer)
    output.write(b"nobody reads this")
    assert output.closed
