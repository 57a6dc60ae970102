"""Examining a log and repairing it: findings, oddities, and the files that a repair writes."""

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkit import event, joined, lines_in, short_log
from trimtab.contracts.errors import ConfigurationError, TrimtabError
from trimtab.contracts.events.session import LOG_VERSION
from trimtab.session.record import Record
from trimtab.session.repair import (
    Finding,
    Findings,
    check_readable,
    examine,
    read_version,
    refuse_future,
    repair,
    sound_records,
)

START, A, B = short_log()[0], *short_log()[2:4]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_finding_says_what_is_wrong_how_often_and_what_was_done() -> None:
    once, twice = Finding("torn", 0, 5), Finding("torn", 0, 5, 2)
    assert once.fact == "The last record is cut off."
    assert once.sentence == "The last record is cut off. It was set aside."
    assert twice.fact == "The last record is cut off. (2 times)"
    assert Finding("chain", 0, 5).sentence.endswith("Nothing was changed.")
    reported = {kind for kind in ("torn", "empty", "no-start", "no-data", "chain", "future")
                if Finding(kind, 0, 0).is_reported}  # fmt: skip
    assert reported == {"empty", "no-start", "no-data"}


@pytest.mark.parametrize(
    ("added", "kept"),
    [
        ([("nul", 5, 3), ("nul", 8, 4)], [Finding("nul", 5, 7, 2)]),
        ([("nul", 5, 3), ("nul", 9, 4)], [Finding("nul", 5, 8, 2)]),
        ([("nul", 5, 3), ("nul", 10, 4)], [Finding("nul", 5, 3), Finding("nul", 10, 4)]),
        (
            [("nul", 5, 3), ("torn", 8, 1), ("nul", 9, 1)],
            [Finding("nul", 5, 3), Finding("torn", 8, 1), Finding("nul", 9, 1)],
        ),
        (
            [("blank", 5, 0), ("torn", 6, 1), ("blank", 90, 2), ("blank", 99, 0)],
            [Finding("blank", 5, 94, 3), Finding("torn", 6, 1)],
        ),
    ],
)
def test_repetitions_extend_the_finding_before_them(
    added: list[tuple[str, int, int]], kept: list[Finding]
) -> None:
    findings = Findings()
    for kind, offset, length in added:
        findings.add(kind, offset, length)
    assert findings.items == kept


def test_from_the_thousandth_on_findings_of_a_known_kind_are_counted_only() -> None:
    findings = Findings()
    for number in range(1200):
        findings.add("garbage", number * 10, 1)
    findings.add("nul", 90_000, 1)
    assert len(findings.items) == 1001
    assert findings.items[998] == Finding("garbage", 9980, 1)
    assert findings.items[999] == Finding("garbage", 9990, 2001, 201)
    assert findings.items[1000] == Finding("nul", 90_000, 1)


def noted(path: Path, *lines: bytes) -> list[Finding]:
    path.write_bytes(joined(list(lines)))
    examination = examine(str(path))
    assert examination.findings == []
    assert examination.count == len(lines)
    return examination.notes


def test_oddities_are_noted_with_their_place(path: Path) -> None:
    start = event("session.start", {"version": LOG_VERSION}, 0)
    second = event("x", {}, 1, 0)
    assert noted(path, start, second) == []
    assert noted(path) == [Finding("empty", 0, 0)]
    assert noted(path, event("x", {}, 0)) == [Finding("no-start", 0, len(event("x", {}, 0)))]
    orphan = event("x", {}, 3, 9)
    assert noted(path, start, orphan) == [Finding("chain", len(start) + 1, len(orphan))]
    bare = second.replace(b'"data":{}', b'"data":[]')
    assert noted(path, start, bare) == [Finding("no-data", len(start) + 1, len(bare))]
    newer = event("session.start", {"version": LOG_VERSION + 1}, 1, 0)
    assert noted(path, start, newer) == [Finding("future", len(start) + 1, len(newer))]
    other = second.replace(b'"data":{}', b'"data":{"a":1}').replace(
        b'"parentId":"00000000-0000-4000-8000-000000000000"',
        b'"parentId":"00000000-0000-4000-8000-000000000001"',
    )
    place = len(start) + len(second) + 2
    assert noted(path, start, second, other) == [Finding("same-id", place, len(other))]


def test_only_events_with_an_id_can_be_duplicates(path: Path) -> None:
    bare = b'{"type":"x","data":{}}'
    path.write_bytes(joined([START, bare, bare]))
    examination = examine(str(path))
    assert (examination.count, examination.findings) == (3, [])
    assert examination.last_id == json.loads(START)["id"]


def test_a_duplicate_is_found_at_its_place_and_not_counted(path: Path) -> None:
    path.write_bytes(joined([START, A, A, B]))
    examination = examine(str(path))
    place = len(START) + len(A) + 2
    assert examination.findings == [Finding("duplicate", place, len(A))]
    assert examination.count == 3
    assert examination.last_id == json.loads(B)["id"]
    assert [record.line for record in sound_records(str(path))] == [START, A, B]
    assert all(isinstance(record, Record) for record in sound_records(str(path)))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (b'{"data":{"version":2.5}}', 2.5),
        (b'{"data":{"version":"3"}}', 3),
        (b'{"data":{}}', 0),
        (b'{"data":{"version":null}}', 0),
        (b'{"data":' + b"[" * 100_000, 0),
    ],
)
def test_a_version_is_read_from_the_first_event(line: bytes, version: float) -> None:
    assert read_version(line) == version


def test_the_highest_version_of_a_log_counts(path: Path) -> None:
    starts = [event("session.start", {"version": version}, version) for version in (1, 3, 2)]
    path.write_bytes(joined(starts))
    assert examine(str(path)).version == 3
    path.write_bytes(joined([A]))
    assert examine(str(path)).version == 0


def test_a_newer_format_is_refused_and_the_log_left_alone(path: Path) -> None:
    refuse_future("x", LOG_VERSION)
    data = joined([event("session.start", {"version": LOG_VERSION + 1}, 0)]) + b"rubbish\n"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=f"version {LOG_VERSION + 1} .*update trimtab"):
        repair(str(path))
    assert path.read_bytes() == data
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_newline_is_added_to_the_same_file(path: Path) -> None:
    path.write_bytes(joined([START]) + A)
    before = path.stat().st_ino
    assert [finding.kind for finding in repair(str(path)).findings] == ["unterminated"]
    assert (path.stat().st_ino, path.read_bytes()) == (before, joined([START, A]))
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_newline_beside_other_damage_is_added_to_a_new_file(path: Path) -> None:
    path.write_bytes(b"no\n" + A)
    kinds = {finding.kind for finding in repair(str(path)).findings}
    assert (kinds, path.read_bytes()) == ({"garbage", "unterminated"}, A + b"\n")


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("bits", [0, 0o777])
def test_a_repaired_log_and_its_side_file_are_for_the_owner_alone(path: Path, bits: int) -> None:
    path.write_bytes(b"rubbish\n" + joined([A]))
    path.chmod(0o644)
    with umask(bits):
        repair(str(path))
    for name in ("events.jsonl", "events.jsonl.damaged-1"):
        assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600
    assert sorted(os.listdir(path.parent)) == ["events.jsonl", "events.jsonl.damaged-1"]


def test_a_repair_that_was_broken_off_before_leaves_nothing_in_the_next(path: Path) -> None:
    path.write_bytes(b"rubbish\n" + joined([A]))
    Path(f"{path}.repaired").write_bytes(b"x" * 10_000)
    repair(str(path))
    assert path.read_bytes() == joined([A])
    assert not Path(f"{path}.repaired").exists()


def test_a_large_log_is_repaired_as_a_whole(path: Path) -> None:
    lines = [event("x", {"text": "y" * 50_000}, number) for number in range(70)]
    path.write_bytes(b"first\n" + joined(lines) + b"last\n")
    assert repair(str(path)).count == 70
    assert path.read_bytes() == joined(lines)
    assert lines_in(path) == lines


def test_a_repair_that_fails_leaves_the_log_as_it_was(path: Path) -> None:
    data = b"rubbish\n" + joined([event("x", {"text": "y" * 5_000}, number) for number in range(9)])
    path.write_bytes(data)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(TrimtabError, match=r"Cannot repair .*events\.jsonl"):
            repair(str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == data
    assert not Path(f"{path}.repaired").exists()


@pytest.mark.parametrize(
    ("names", "number"),
    [([], 1), (["1"], 2), (["9", "10"], 11), (["x", "3", "4x", "-7"], 4), (["0"], 1)],
)
def test_a_side_file_gets_the_next_number(path: Path, names: list[str], number: int) -> None:
    for name in names:
        Path(f"{path}.damaged-{name}").write_text(name)
    (path.parent / "other.damaged-77").write_text("x")
    path.write_bytes(b"rubbish\n" + joined([A]))
    repair(str(path))
    head, raw = Path(f"{path}.damaged-{number}").read_bytes().splitlines()
    assert json.loads(head) == {"offset": 0, "length": 7, "kind": "garbage"}
    assert raw == b"rubbish"
    for name in names:
        assert Path(f"{path}.damaged-{name}").read_text() == name


def test_a_repair_without_removed_bytes_writes_no_side_file(path: Path) -> None:
    path.write_bytes(joined([A]) + b"\n" + joined([B]))
    assert [finding.kind for finding in repair(str(path)).findings] == ["blank"]
    assert os.listdir(path.parent) == [path.name]


def test_only_a_file_is_a_readable_log(path: Path) -> None:
    path.write_bytes(b"")
    check_readable(str(path))
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(ConfigurationError, match="Cannot read"):
        check_readable(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigurationError, match="not a file"):
        check_readable(str(path))
