"""A session as a document that can be given to others."""

import json
from typing import Any

from trimtab.session.export import export
from trimtab.session.record import parse_record
from trimtab.session.summary import SessionSummary

SUMMARY = SessionSummary(
    id="s-1",
    path="",
    title="Fix <b>it</b>",
    cwd='/work/"a"',
    branch="main",
    created_at="2026-01-01",
)


def write(form: str, *events: tuple[str, dict[str, Any]], agent: str | None = None) -> str:
    records = []
    for number, (kind, data) in enumerate(events):
        event = {"type": kind, "data": data, "id": str(number), "timestamp": "t", "parentId": None}
        line = json.dumps(event | ({"agentId": agent} if agent else {})).encode()
        record = parse_record(line, 0)
        assert record is not None
        records.append(record)
    return "".join(export(form, SUMMARY, records))


USER = ("user.message", {"content": 'Say "hi" & <go>'})
ANSWER = ("assistant.message", {"content": "Done.", "reasoningText": "First\nthen"})
CALL = ("tool.execution_start", {"toolCallId": "1", "toolName": "bash", "arguments": {"a": "b"}})
SILENT = (
    "tool.execution_complete",
    {"toolCallId": "1", "success": True, "result": {"content": ""}},
)
FAILED = (
    "tool.execution_complete",
    {"toolCallId": "1", "success": False, "error": {"message": "no ``` here"}},
)


def test_a_page_escapes_everything_that_was_said() -> None:
    page = write("html", USER, ANSWER)
    assert "<h1>Fix &lt;b&gt;it&lt;/b&gt;</h1>" in page
    assert "<li>Folder: /work/&quot;a&quot;</li>" in page
    assert "<li>Branch: main</li>" in page
    assert "Last used" not in page
    assert (
        '<section class="user"><h2>User</h2><pre>Say &quot;hi&quot; &amp; &lt;go&gt;</pre>' in page
    )
    assert '<details class="reasoning"><summary>Reasoning</summary><pre>First\nthen</pre>' in page


def test_a_page_folds_what_has_text_and_names_what_has_none() -> None:
    page = write("html", CALL, SILENT)
    assert '<details class="call"><summary>Tool call: bash' in page
    assert '<p class="result">Result: bash' in page
    assert "<pre></pre>" not in page


def test_a_failure_and_a_sub_agent_are_told_in_the_heading() -> None:
    page = write("html", CALL, FAILED, agent="helper")
    assert '<details class="result failed"><summary>Failure: bash' in page
    assert "(sub-agent helper)</summary>" in page


def test_markdown_fences_outputs_with_more_backticks_than_they_have() -> None:
    document = write("md", USER, CALL, FAILED, CALL, SILENT, ANSWER)
    assert document.startswith("# Fix <b>it</b>\n\n- Session: s-1\n- Folder: /work/")
    assert '\n## User\n\nSay "hi" & <go>\n' in document
    assert "\n````\nno ``` here\n````\n" in document
    assert "> First\n> then\n" in document
    assert document.endswith("## Assistant\n\nDone.\n")


def test_json_is_an_array_of_the_events_as_they_are() -> None:
    assert json.loads(write("json")) == []
    assert [event["data"] for event in json.loads(write("json", USER, CALL))] == [USER[1], CALL[1]]
