"""A session as a document that can be given to others."""

import json
from typing import Any

from trimtab.session.export import export, json_line
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


def spans(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    records = []
    for number, (kind, data) in enumerate(events):
        time = f"2026-01-01T00:00:0{number}.000Z"
        event = {"type": kind, "data": data, "id": str(number), "timestamp": time}
        record = parse_record(json.dumps(event).encode(), 0)
        assert record is not None
        records.append(record)
    lines = "".join(export("otel", SUMMARY, records))
    assert lines.endswith("\n") or not lines
    return [json.loads(line) for line in lines.splitlines()]


def test_spans_are_lines_of_json_without_the_texts_of_messages() -> None:
    found = spans(USER, CALL, SILENT, ("session.idle", {}), USER, CALL)
    assert [span["name"] for span in found] == [
        "execute_tool bash",
        "invoke_agent trimtab",
        "execute_tool bash",
        "invoke_agent trimtab",
    ]
    assert {span["instrumentationScope"]["name"] for span in found} == {"trimtab"}
    assert found[0]["attributes"]["gen_ai.conversation.id"] == "s-1"
    assert "go" not in json.dumps(found)
    assert spans() == []


def test_a_session_without_a_title_is_named_by_its_id() -> None:
    plain = SessionSummary(id="s-2", path="", updated_at="2026-02-02")
    assert "".join(export("md", plain, ())) == "# s-2\n\n- Session: s-2\n- Last used: 2026-02-02\n"
    page = "".join(export("html", plain, ()))
    assert "<title>s-2</title>" in page
    assert (
        "<h1>s-2</h1>\n<ul>\n<li>Session: s-2</li>\n<li>Last used: 2026-02-02</li>\n</ul>" in page
    )
    assert page.endswith("</main>\n</html>\n")


def test_a_heading_without_text_stands_alone() -> None:
    document = write("md", CALL, SILENT, ("session.warning", {}))
    assert document.endswith("\n### Result: bash\n\n*Warning*\n\n")
    note = write("md", ("session.warning", {"message": "a\n\nb"}))
    assert note.endswith("\n*Warning*\n\n> a\n> \n> b\n")
    named = write("md", CALL, agent="helper")
    assert "\n### Tool call: bash (sub-agent helper)\n\n```\nb\n```\n" in named


def test_lines_that_are_not_strict_json_are_written_anew() -> None:
    assert json_line(b'{"type":"x", "data":{}}') == '{"type":"x", "data":{}}'
    assert json_line(b'{"type":"x","data":{"a":NaN}}') == '{"type": "x", "data": {"a": null}}'
    assert json.loads(json_line(b'{"type":"x\x01","data":{"a":"\t"}}'))["type"] == "x\x01"
