"""The parts of the editor transport that need no process."""

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.host.parts import FileEdit, ToolInvocation
from trimtab.transports.acp.prompts import find_lines, local_path, read_prompt
from trimtab.transports.acp.protocol import AcpError, decode_incoming, encode, find_id
from trimtab.transports.acp.schema import ContentBlock
from trimtab.transports.acp.tool_calls import (
    build_diffs,
    describe_title,
    fence,
    find_kind,
    find_locations,
    merge_edits,
)
from trimtab.version import __version__

ROOT = Path(__file__).parents[4]


def call(name: str, **fields: Any) -> ToolInvocation:
    fields.setdefault("arguments", {})
    return ToolInvocation(
        key="call  1", call_id="1", name=name, title=name, state="running", **fields
    )


TITLES = [
    ("bash", {"command": "make test"}, "make test"),
    ("bash", {"command": "cd x\nmake"}, "cd x …"),
    ("view", {"path": "/project/src/a.py"}, "Read src/a.py"),
    ("edit", {"path": "a.py"}, "Edit a.py"),
    ("create", {"path": "/etc/motd"}, "Create /etc/motd"),
    ("grep", {"pattern": "TODO"}, "Search for TODO"),
    ("exit_plan_mode", {}, "Leave plan mode"),
    ("bash", {"command": "x" * 300}, "x" * 199 + "…"),
]


@pytest.mark.parametrize(("name", "arguments", "title"), TITLES)
def test_a_title_shows_the_command_or_the_file(
    name: str, arguments: dict[str, str], title: str
) -> None:
    assert describe_title(call(name, arguments=arguments), "/project") == title


def test_a_tool_of_a_server_is_of_no_known_kind() -> None:
    assert find_kind(call("view", server="files")) == "other"
    assert find_kind(call("view")) == "read"


def test_locations_are_absolute_and_have_the_first_line() -> None:
    viewed = call("view", arguments={"path": "a.py", "view_range": [7, 9]})
    assert find_locations(viewed, "/project") == [{"path": "/project/a.py", "line": 7}]


def test_two_edits_of_a_file_are_one_diff_from_the_first_text_to_the_last() -> None:
    edits = (
        FileEdit(path="/a", before="1", after="2"),
        FileEdit(path="/a", before="2", after="3"),
        FileEdit(path="/b", after="4", created=True),
    )
    texts = {"1": "one", "3": "three", "4": "four"}
    assert [edit.after for edit in merge_edits(edits)] == ["3", "4"]
    assert build_diffs(call("bash", edits=edits), texts.get) == [
        {"type": "diff", "path": "/a", "oldText": "one", "newText": "three"},
        {"type": "diff", "path": "/b", "newText": "four"},
    ]


def test_a_file_that_is_not_kept_has_no_diff() -> None:
    edits = (FileEdit(path="/a", before="", after="2"),)
    assert build_diffs(call("bash", edits=edits), {"2": "two"}.get) == []


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fence("a ``` b", "sh") == "````sh\na ``` b\n````"


def test_links_become_paths_and_attachments(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    uri = (tmp_path / "a b.txt").as_uri() + "#L3:5"
    prompt = read_prompt(
        [
            ContentBlock(type="text", text="see "),
            ContentBlock(type="resource_link", uri=uri, name="a b.txt"),
            ContentBlock(type="resource_link", uri="https://example.com/x", name="x"),
        ]
    )
    assert prompt.text == f"see {tmp_path}/a b.txt[x](https://example.com/x)"
    [attached] = prompt.attachments
    assert attached["lineRange"] == {"start": 3, "end": 5}


URIS = [
    ("file:///a%20b", "/a b"),
    ("/plain", "/plain"),
    ("file://elsewhere/a", None),
    ("https://example.com", None),
    ("http://[broken", None),
]


@pytest.mark.parametrize(("uri", "path"), URIS)
def test_only_files_of_this_machine_have_a_path(uri: str, path: str | None) -> None:
    assert local_path(uri) == path


LINES = [("f:///a#L3", (3, 3)), ("f:///a#L3-L9", (3, 9)), ("f:///a#top", None), ("f:///a", None)]


@pytest.mark.parametrize(("uri", "lines"), LINES)
def test_a_fragment_names_lines(uri: str, lines: tuple[int, int] | None) -> None:
    assert find_lines(uri) == lines


def test_the_id_of_an_invalid_message_is_found() -> None:
    line = b'{"id": "x", "method": 5}'
    with pytest.raises(AcpError):
        decode_incoming(line)
    assert find_id(line) == "x"


def test_a_lone_surrogate_is_sent_as_an_escape() -> None:
    assert encode({"path": "a\udcff"}) == b'{"path":"a\\udcff"}\n'


def test_the_registry_entry_names_this_version_and_the_flag() -> None:
    entry = json.loads((ROOT / "examples" / "acp-registry" / "agent.json").read_text())
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"]["package"] == f"trimtab=={__version__}"
    assert entry["distribution"]["uvx"]["args"] == ["--acp"]
