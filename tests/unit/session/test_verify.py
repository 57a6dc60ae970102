import json
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkit import SESSION, chain, event, joined, short_log, store_session
from trimtab.session.export import export
from trimtab.session.folder import SessionFolder
from trimtab.session.record import Record, parse_record
from trimtab.session.records import follow_records, read_records
from trimtab.session.summary import SessionSummary, summarize
from trimtab.session.verify import verify


def stored(tmp_path: Path, lines: list[bytes]) -> SessionFolder:
    return SessionFolder(SESSION, str(store_session(tmp_path, lines)))


def test_an_intact_log_verifies_with_its_counts(tmp_path: Path) -> None:
    report = verify(stored(tmp_path, short_log()))
    assert report.is_intact
    assert report.events == 12
    assert report.size == len(joined(short_log()))
    assert report.types["assistant.message"] == 2
    assert (report.open_calls, report.open_turns, report.notes) == ([], 0, [])


def test_verifying_changes_nothing_and_finds_all(tmp_path: Path) -> None:
    lines = short_log()
    folder = stored(tmp_path, [lines[0], b"rubbish", lines[1], lines[1], *lines[3:6]])
    before = Path(folder.events).read_bytes()
    report = verify(folder)
    assert [finding.kind for finding in report.damage] == ["garbage", "duplicate"]
    assert [finding.kind for finding in report.notes] == ["chain"]
    assert not report.is_intact
    assert Path(folder.events).read_bytes() == before
    assert sorted(Path(folder.path).iterdir()) == [Path(folder.events)]


def test_what_is_left_open_is_information_not_damage(tmp_path: Path) -> None:
    lines = [line for line in short_log() if b"complete" not in line and b"turn_end" not in line]
    report = verify(stored(tmp_path, lines))
    assert report.is_intact
    assert (report.open_calls, report.open_turns) == (["c1"], 1)


def exported(form: str, lines: list[bytes]) -> str:
    records = [record for line in lines if (record := parse_record(line, 0))]
    assert len(records) == len(lines)
    return "".join(export(form, SessionSummary(id=SESSION, path="", title="A <b>title"), records))


@pytest.mark.parametrize("lines", [[], short_log()])
def test_json_is_the_events_as_they_are(lines: list[bytes]) -> None:
    assert json.loads(exported("json", lines)) == [json.loads(line) for line in lines]


def test_json_is_strict_even_where_the_log_is_not() -> None:
    lines = [
        b'{"type":"x","data":{"a":NaN,"b":"\\ud800"},"id":"1"}',
        b'{"type":"x","data":{"c":"raw \x01\t"},"id":"2"}',
    ]

    def refuse(name: str) -> None:
        raise AssertionError(name)

    events = json.loads(exported("json", lines), parse_constant=refuse)
    assert events[0]["data"]["b"] == "\ud800"
    assert events[1]["data"]["c"] == "raw \x01\t"


def test_markdown_reads_as_a_conversation() -> None:
    text = exported("md", short_log())
    assert text.startswith("# A <b>title\n")
    words = ['## User\n\nWas heißt "naïve"?', "### Tool call: bash", "ok {}", "## Assistant\n\nEin"]
    positions = [text.index(word) for word in words]
    assert positions == sorted(positions)
    assert "\x1b" not in text


def test_a_code_block_cannot_be_broken_out_of() -> None:
    result = {"toolCallId": "c", "success": True, "result": {"content": "a\n```\n# fake\n````\n"}}
    text = exported("md", [event("tool.execution_complete", result, 1)])
    assert "\n`````\na\n```\n# fake\n````\n\n`````\n" in text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


OUR_TAGS = {
    *("html", "meta", "title", "style", "main", "h1", "h2"),
    *("ul", "li", "section", "pre", "details", "summary", "p"),
}


@given(st.text(max_size=30).map(lambda text: text + "</pre><script>alert(1)</script>"))
def test_no_text_becomes_markup_in_html(text: str) -> None:
    lines = chain(
        [
            ("user.message", {"content": text}),
            ("tool.execution_start", {"toolCallId": "c", "toolName": text, "arguments": text}),
            ("tool.execution_complete", {"toolCallId": "c", "error": {"message": text}}),
            ("session.error", {"message": text}),
        ]
    )
    tags = Tags()
    tags.feed(exported("html", lines))
    assert set(tags.tags) <= OUR_TAGS
    assert {"section", "details", "pre"} <= set(tags.tags)


def test_exports_survive_data_of_any_shape() -> None:
    odd = [1, "text", None, [], {"content": 5}, {"content": {"a": 1}, "attachments": [1, {}]}]
    names = ["user.message", "assistant.message", "tool.execution_complete", "session.error"]
    lines = [
        b'{"type":"%s","data":%s,"id":""}' % (name.encode(), json.dumps(data).encode())
        for name in names
        for data in odd
    ]
    for form in ("md", "html", "json"):
        assert exported(form, lines)


def test_a_summary_survives_data_of_any_shape(tmp_path: Path) -> None:
    odd: list[Any] = [1, "text", None, [], {"context": 5}, {"content": {}}]
    for number, data in enumerate(odd):
        lines = [
            b'{"type":"%s","data":%s,"id":""}' % (name, json.dumps(data).encode())
            for name in (b"session.start", b"user.message")
        ]
        folder = store_session(tmp_path, lines, str(number), workspace_yaml="name: [1]\ncwd: 5\n")
        assert summarize(SessionFolder("x", str(folder))).problem is None


def test_following_gives_records_as_they_come_and_ends_with_the_writer(tmp_path: Path) -> None:
    lines = short_log()
    folder = stored(tmp_path, lines[:3])
    path = Path(folder.events)
    writing = threading.Event()
    writing.set()
    seen: list[Record] = []
    three = threading.Event()

    def watch() -> None:
        for record in follow_records(str(path), start=0, is_running=writing.is_set):
            seen.append(record)
            if len(seen) in (3, 5):
                three.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert three.wait(10)
    three.clear()
    with path.open("ab") as file:
        file.write(joined(lines[3:5]) + lines[5][:20])
        file.flush()
        assert three.wait(10)
        file.write(lines[5][20:] + b"\n")
    writing.clear()
    watcher.join(10)
    assert [record.line for record in seen] == lines[:6]
    assert [record.line for record in read_records(str(path))] == lines[:6]


def test_calls_are_paired_by_id_and_turns_by_agent(tmp_path: Path) -> None:
    def of(agent: str, line: bytes) -> bytes:
        return line.replace(b'{"type"', b'{"agentId":"%s","type"' % agent.encode())

    lines = [
        event("assistant.turn_start", {"turnId": "0"}, 1),
        of("a", event("assistant.turn_start", {"turnId": "0"}, 2)),
        of("a", event("assistant.turn_end", {"turnId": "0"}, 3)),
        event("tool.execution_start", {"toolCallId": "c1"}, 4),
        event("tool.execution_start", {"toolCallId": "c2"}, 5),
        of("a", event("tool.execution_complete", {"toolCallId": "c1"}, 6)),
        event("tool.execution_complete", {"toolCallId": "c9"}, 7),
        event("tool.execution_start", {}, 8).replace(b'"data":{}', b'"data":5'),
        event("user.message", {"toolCallId": "c2"}, 9),
        event("tool.execution_start", {"toolCallId": 7}, 10),
    ]
    report = verify(stored(tmp_path, lines))
    assert (report.open_calls, report.open_turns) == (["c2", "7"], 1)
    assert (report.events, report.types) == (
        10,
        {
            "tool.execution_start": 4,
            "assistant.turn_start": 2,
            "tool.execution_complete": 2,
            "assistant.turn_end": 1,
            "user.message": 1,
        },
    )
    assert next(iter(report.types)) == "tool.execution_start"


def test_files_that_earlier_repairs_set_aside_are_listed_in_order(tmp_path: Path) -> None:
    folder = stored(tmp_path, short_log())
    for name in ("events.jsonl.damaged-2", "events.jsonl.damaged-1", "events.jsonl.cut-1", "x"):
        Path(folder.path, name).write_text("")
    report = verify(folder)
    assert report.set_aside == ["events.jsonl.damaged-1", "events.jsonl.damaged-2"]
    assert (report.id, report.path) == (SESSION, folder.events)


def test_a_log_of_a_newer_format_cannot_be_opened(tmp_path: Path) -> None:
    newer = [event("session.start", {"version": 99}, 1)]
    assert not verify(stored(tmp_path / "a", newer)).can_be_opened
    odd = verify(stored(tmp_path / "b", short_log()[1:]))
    assert odd.notes
    assert odd.can_be_opened
