"""The corruption corpus: a short log, every byte of it, every kind of damage."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logkit import event, joined, lines_in, short_log
from trimtab.session.log import EventLog
from trimtab.session.repair import examine

LINES = short_log()
DATA = joined(LINES)
STARTS = [sum(len(line) + 1 for line in LINES[:number]) for number in range(len(LINES))]
NEW = event("session.resume", {"eventCount": 12}, 99)

DAMAGES = {
    "truncate": lambda at: DATA[:at],
    "flip": lambda at: DATA[:at] + bytes([DATA[at] ^ 0x15]) + DATA[at + 1 :],
    "flip the high bit": lambda at: DATA[:at] + bytes([DATA[at] ^ 0x80]) + DATA[at + 1 :],
    "insert NUL bytes": lambda at: DATA[:at] + bytes(37) + DATA[at:],
    "insert a newline": lambda at: DATA[:at] + b"\n" + DATA[at:],
    "delete a byte": lambda at: DATA[:at] + DATA[at + 1 :],
    "repeat the rest": lambda at: DATA + DATA[at:],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Use memory if the system has /dev/shm: the tests open 19,000 logs."""
    if os.path.isdir("/dev/shm"):
        import tempfile

        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            yield Path(name)
    else:
        yield tmp_path_factory.mktemp("corpus")


def untouched(kind: str, at: int) -> list[bytes]:
    """Return the records that damage of this kind at this byte does not affect."""
    if kind == "repeat the rest":
        return LINES
    width = {"insert NUL bytes": 0, "insert a newline": 0, "truncate": len(DATA)}.get(kind, 1)
    return [
        line
        for line, start in zip(LINES, STARTS, strict=True)
        if start + len(line) <= at or start >= at + width
    ]


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_at_any_byte_costs_at_most_the_record_it_hits(kind: str, folder: Path) -> None:
    path = folder / "events.jsonl"
    for at in range(len(DATA)):
        path.write_bytes(DAMAGES[kind](at))
        log = EventLog.open(str(path))
        log.append(NEW)
        log.close()
        kept = lines_in(path)
        expected = [*untouched(kind, at), NEW]
        assert [line for line in kept if line in expected] == expected, (kind, at)
        assert path.read_bytes() == joined(kept), (kind, at)

        again = examine(str(path))
        assert again.findings == [], (kind, at)
        assert again.count == len(kept), (kind, at)
        for aside in folder.glob("*.damaged-*"):
            aside.unlink()


def spans() -> st.SearchStrategy[list[tuple[int, int, bytes]]]:
    """Draw a few cuts: offset, length, replacement."""
    junk = st.one_of(
        st.just(b""),
        st.just(b"\n"),
        st.just(b"\r\n"),
        st.just(b"\xef\xbb\xbf"),
        st.binary(max_size=20),
        st.integers(1, 5000).map(bytes),
        st.sampled_from(LINES),
        st.sampled_from(LINES).map(lambda line: line[: len(line) // 2]),
    )
    cut = st.tuples(st.integers(0, len(DATA)), st.integers(0, 60), junk)
    return st.lists(cut, min_size=1, max_size=4)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans())
def test_several_damages_leave_every_record_between_them(
    folder: Path, cuts: list[tuple[int, int, bytes]]
) -> None:
    data, end = b"", 0
    hit = set()
    for wish, length, junk in sorted(cuts):
        at = max(wish, end)
        data += DATA[end:at] + junk
        end = min(at + length, len(DATA))
        # A record is hit if a byte of it is gone, or something stands inside it; a cut that only
        # removes newlines around it glues it to its neighbours.
        hit |= {
            number
            for number, (line, start) in enumerate(zip(LINES, STARTS, strict=True))
            if start < max(end, at + 1) and at < start + len(line) and (at, end) != (start, start)
        }
    data += DATA[end:]
    path = folder / "several.jsonl"
    path.write_bytes(data)
    log = EventLog.open(str(path))
    log.append(NEW)
    log.close()
    kept = lines_in(path)
    for number, line in enumerate(LINES):
        assert number in hit or line in kept, (number, data)
    assert kept[-1] == NEW
    again = EventLog.open(str(path))
    again.close()
    assert again.findings == ()
    assert lines_in(path) == kept
