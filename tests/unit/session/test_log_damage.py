"""Each kind of damage: the records kept, the findings, the bytes set aside."""

import json
import os
from pathlib import Path

import pytest

from logkit import event, joined, lines_in, short_log
from trimtab.contracts.errors import ConfigurationError
from trimtab.session.log import EventLog
from trimtab.session.repair import (
    Finding,
    check_readable,
    examine,
    read_version,
    sound_records,
)

A, B, C = short_log()[2:5]
TEXT = event("user.message", {"content": "one\ntwo"}, 7)


def opened(path: Path, data: bytes) -> tuple[list[bytes], list[str]]:
    """Return the records after opening a log with these bytes, and the kinds of its findings."""
    path.write_bytes(data)
    log = EventLog.open(str(path))
    log.close()
    assert log.count == len(lines_in(path))
    again = EventLog.open(str(path))
    again.close()
    assert again.findings == ()
    assert all(finding.sentence.endswith((".", ")")) for finding in log.findings)
    return lines_in(path), [finding.kind for finding in log.findings]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.mark.parametrize(
    ("data", "kept", "kinds"),
    [
        (A + b"\n" + B, [A, B], ["unterminated"]),
        (A + b"\n" + B[:-9], [A], ["torn"]),
        (A + b"\n" + B + b"\n" + bytes(5000), [A, B], ["nul"]),
        (A + b"\n" + bytes(5000) + B + b"\n", [A, B], ["nul"]),
        (A + b"\n" + bytes(5000) + b"\n" + B + b"\n", [A, B], ["nul"]),
        (A + B + C + b"\n", [A, B, C], ["glued"]),
        (A + b" \t" + B + b"\n", [A, B], ["glued"]),
        (A + b"\n" + B[:40] + C + b"\n", [A, C], ["garbage"]),
        (joined([A, B, A, C]), [A, B, C], ["duplicate"]),
        (joined([A, B]) * 2, [A, B], ["duplicate"]),
        (TEXT.replace(rb"\n", b"\n") + b"\n", [TEXT], ["newline"]),
        (A.replace(b',"data"', b'\n,\n"data"') + b"\n", [A], ["newline"]),
        (b"\xef\xbb\xbf" + joined([A, B]), [A, B], ["bom"]),
        (A + b"\r\n" + B + b"\r\n", [A, B], ["crlf"]),
        (A + b"\n\n  \n" + B + b"\n", [A, B], ["blank"]),
        (A + b"\nrubbish {}\n[1]\n" + B + b"\n", [A, B], ["garbage"]),
        (A[:50] + B + b"\n" + A[50:] + b"\n", [A, B], ["halves", "halves"]),
        (A[:50] + B + A[50:] + b"\n", [A, B], ["halves", "halves"]),
        (A[:50] + b"\n" + A[50:] + b"\n" + B + b"\n", None, None),
        (b"\xff\xfe rubbish " * 999, [], ["garbage"]),
        (b"\0" * 1_000_000, [], ["nul"]),
        (b'null\n42\n[]\n{}\n"x"\n' + A + b"\n", [A], ["garbage"]),
        (b"", [], []),
    ],
)
def test_damage_is_mended_or_set_aside(
    path: Path, data: bytes, kept: list[bytes] | None, kinds: list[str] | None
) -> None:
    lines, found = opened(path, data)
    if kept is not None:
        assert (lines, found) == (kept, kinds)
    else:
        assert lines[-1] == B


@pytest.mark.parametrize(
    "line",
    [
        event("user.message", {"content": "line\u2028paragraph\u2029next\x85end"}, 1),
        b'{"type":"user.message","data":{"content":"\\ud800 alone"},"id":"1"}',
        b'{"type":"user.message","data":{"content":"raw \x01 control and \t tab"},"id":"1"}',
        b'{"type":"user.message","data":{"content":NaN},"id":"1"}',
        b'{"type":"nobody.knows","data":[],"id":"1","more":{"a":1},"timestamp":"t","parentId":null}',
        b'{"id":"1","parentId":null,"timestamp":"t","data":{},"type":"x"}',
    ],
)
def test_what_other_writers_write_is_kept_byte_for_byte(path: Path, line: bytes) -> None:
    data = joined([A, line, B])
    assert opened(path, data) == ([A, line, B], [])
    assert path.read_bytes() == data
    assert sorted(os.listdir(path.parent)) == ["events.jsonl", "session.lock"]


def test_spaces_around_a_record_are_no_damage(path: Path) -> None:
    data = b"  " + A + b"\t\n"
    assert opened(path, data) == ([A], [])
    assert path.read_bytes() == data


def test_bytes_that_are_no_utf8_are_marked_and_the_original_set_aside(path: Path) -> None:
    broken = TEXT.replace(b"two", b"tw\xff")
    lines, kinds = opened(path, joined([A, broken, B]))
    assert kinds == ["utf8"]
    assert lines[0] == A
    assert lines[2] == B
    assert json.loads(lines[1])["data"]["content"] == "one\ntw\ufffd"
    assert set_aside(path) == [(len(A) + 1, "utf8", broken)]


def set_aside(path: Path, number: int = 1) -> list[tuple[int, str, bytes]]:
    """Return the offsets and bytes in a side file, parsed as documented."""
    data = path.with_name(f"events.jsonl.damaged-{number}").read_bytes()
    pieces = []
    while data:
        head, _, data = data.partition(b"\n")
        about = json.loads(head)
        pieces.append((about["offset"], about["kind"], data[: about["length"]]))
        assert data[about["length"] : about["length"] + 1] == b"\n"
        data = data[about["length"] + 1 :]
    return pieces


def test_everything_taken_out_can_be_found_in_the_side_file(path: Path) -> None:
    data = A + b"\nfirst rubbish\n" + B + b"\n" + C[:70]
    opened(path, data)
    pieces = set_aside(path)
    assert [(kind, raw) for _, kind, raw in pieces] == [
        ("garbage", b"first rubbish"),
        ("torn", C[:70]),
    ]
    assert all(data[offset : offset + len(raw)] == raw for offset, _, raw in pieces)


def test_side_files_are_numbered_and_never_overwritten(path: Path) -> None:
    opened(path, b"first\n" + A + b"\n")
    opened(path, b"second\n" + A + b"\n")
    assert set_aside(path, 1)[0][2] == b"first"
    assert set_aside(path, 2)[0][2] == b"second"


def test_an_intact_log_is_not_written_to(path: Path) -> None:
    path.write_bytes(joined(short_log()))
    before = path.stat()
    log = EventLog.open(str(path))
    log.close()
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert (log.findings, log.notes) == ((), ())


def test_a_part_of_a_torn_record_is_never_taken_for_an_event(path: Path) -> None:
    inner = event("user.message", {"content": "forged"}, 50).decode()
    outer = event("tool.execution_start", {"arguments": {"a": [json.loads(inner)], "b": 1}}, 8)
    for at in range(20, len(outer) - 1):
        path.write_bytes(A + b"\n" + outer[:at] + b"\n" + B + b"\n")
        lines = [record.line for record in sound_records(str(path))]
        assert B in lines
        assert at == outer.index(inner.encode()) + len(inner) or not any(
            json.loads(line)["type"] == "user.message" for line in lines if line not in (A, B)
        ), at


def test_a_broken_chain_and_a_shared_id_are_noted_and_left_alone(path: Path) -> None:
    other = A.replace(b"brief", b"short")
    path.write_bytes(joined([A, other, C]))
    log = EventLog.open(str(path))
    log.close()
    assert log.findings == ()
    assert [note.kind for note in log.notes] == ["no-start", "chain", "same-id"]
    assert lines_in(path) == [A, other, C]


def test_findings_say_where(path: Path) -> None:
    path.write_bytes(A + b"\nrubbish\n" + B + b"\n")
    (finding,) = examine(str(path)).findings
    assert finding == Finding("garbage", len(A) + 1, 7)
    assert path.read_bytes() == A + b"\nrubbish\n" + B + b"\n"


def test_countless_findings_are_counted_not_kept(path: Path) -> None:
    path.write_bytes((A + b"x\n" + b"\0\n" + b"rubbish\n\n") * 3000)
    findings = examine(str(path)).findings
    assert len(findings) <= 1010
    assert sum(finding.count for finding in findings) >= 9000


@pytest.mark.parametrize(
    "beginning",
    [
        b'{"id":x',
        b'{"id":{',
        b'{"type":"',
        b'{"id":["',
        b'{"id":"\n',
        b"{",
        b'{"data":[1,',
        b"\xff{",
    ],
)
@pytest.mark.timeout(30)
def test_rubbish_made_of_countless_beginnings_takes_no_time(path: Path, beginning: bytes) -> None:
    data = joined([A]) + beginning * (1_000_000 // len(beginning)) + b"\n" + joined([B])
    lines, kinds = opened(path, data)
    assert lines == [A, B]
    assert "garbage" in kinds


def test_a_log_that_is_no_file_is_a_clear_error(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ConfigurationError, match="not a file"):
        EventLog.open(str(path))
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="not a file"):
        EventLog.open(str(path))
    path.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        EventLog.open(str(path))
    assert not path.exists()


def test_a_linked_log_is_mended_where_it_lies(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.jsonl"
    path.symlink_to(real)
    assert opened(path, A + b"\nrubbish\n")[0] == [A]
    assert path.is_symlink()
    assert real.read_bytes() == A + b"\n"


def test_an_event_after_rubbish_that_is_nested_too_deeply_is_found(path: Path) -> None:
    rubbish = b'{"a":' * 3_000
    lines, kinds = opened(path, joined([A]) + rubbish + joined([B]))
    assert lines == [A, B]
    assert kinds == ["garbage"]


def test_a_link_in_place_of_the_repaired_log_is_not_followed(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    Path(f"{path}.repaired").symlink_to(precious)
    path.write_bytes(joined([A]) + b"rubbish\n" + joined([B]))
    with pytest.raises(ConfigurationError, match="Cannot repair"):
        EventLog.open(str(path))
    assert precious.read_text() == "mine"


def test_a_log_that_can_be_read_is_not_refused(path: Path) -> None:
    path.write_bytes(joined([A]))
    check_readable(str(path))
    path.unlink()
    with pytest.raises(ConfigurationError, match=r"events\.jsonl"):
        check_readable(str(path))


@pytest.mark.parametrize(
    ("line", "version"),
    [(b'{"data":{"version":2}}', 2), (b"{}", 0), (b'{"data":{"version":"x"}}', 0), (b"[", 0)],
)
def test_a_log_without_a_readable_version_has_the_version_0(line: bytes, version: float) -> None:
    assert read_version(line) == version
