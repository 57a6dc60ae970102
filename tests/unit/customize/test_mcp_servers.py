"""MCP server configuration: sources, priorities, fields, variables."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from customizekit import places_in, write
from trimtab.customize.expansion import Expansion
from trimtab.customize.mcp_servers import FoundServers, find_servers, server_files

SOURCES = [
    "home/.gemini/settings.json",
    "home/.cursor/mcp.json",
    "home/.claude.json",
    "home/.copilot/mcp-config.json",
    "repo/.gemini/settings.json",
    "repo/.cursor/mcp.json",
    "repo/.mcp.json",
    "repo/.vscode/mcp.json",
]
"""From the least to the most important."""


def servers(**entries: Any) -> str:
    return json.dumps({"mcpServers": entries})


def find(folder: Path, *flags: str, trusted: bool = True, **env: str) -> FoundServers:
    places = places_in(folder, trusted=trusted, **env)
    return find_servers(server_files(places, {"VSCODE_INTEGRATION"}), places, flags)


@pytest.mark.parametrize("count", range(1, len(SOURCES) + 1))
def test_the_last_source_wins(tmp_path: Path, count: int) -> None:
    for name in SOURCES[:count]:
        write(tmp_path / name, servers(one={"command": name}))
    found = find(tmp_path)
    assert found.servers["one"].command == SOURCES[count - 1]
    assert len(found.shadowed) == count - 1
    assert find(tmp_path, servers(one={"command": "flag"})).servers["one"].command == "flag"


@pytest.mark.proves("MCP-02")
def test_a_flag_is_json_or_a_file(tmp_path: Path) -> None:
    write(tmp_path / "repo/more.json", servers(a={"url": "https://a.example/mcp"}))
    found = find(tmp_path, "@more.json", servers(b={"command": "b"}), "{broken")
    assert sorted(found.servers) == ["a", "b"]
    assert found.servers["a"].source == "flag"
    assert [problem.file for problem in found.problems] == ["--additional-mcp-config (3)"]


def test_a_folder_that_is_not_trusted_configures_no_server(tmp_path: Path) -> None:
    for name in SOURCES:
        write(tmp_path / name, servers(**{name.replace("/", "-"): {"command": "x"}}))
    assert all(name.startswith("home-") for name in find(tmp_path, trusted=False).servers)


def test_only_one_of_the_two_workspace_files_is_used(tmp_path: Path) -> None:
    write(tmp_path / "repo/.github/mcp.json", servers(b={"command": "b"}))
    assert list(find(tmp_path).servers) == ["b"]
    write(tmp_path / "repo/.mcp.json", servers(a={"command": "a"}))
    assert list(find(tmp_path).servers) == ["a"]


@pytest.mark.proves("MCP-03", "MCP-04")
def test_every_field_is_read(tmp_path: Path) -> None:
    local = {
        "type": "local",
        "command": "run",
        "args": ["--flag"],
        "cwd": "/tmp",
        "env": {"A": "b"},
        "tools": ["x"],
        "timeout": 30000,
        "filterMapping": "markdown",
        "displayName": "Mine",
        "oauthClientId": "id",
        "oauthPublicClient": False,
    }
    remote = {"type": "sse", "url": "https://x.example", "headers": {"H": "v"}}
    write(
        tmp_path / "repo/.mcp.json",
        servers(l=local, r=remote, h={"type": "http", "url": "https://y"}),
    )
    found = find(tmp_path)
    server = found.servers["l"]
    assert (server.type, server.command, server.args, server.cwd, server.env) == (
        "local",
        "run",
        ("--flag",),
        "/tmp",
        {"A": "b"},
    )
    assert (server.tools, server.timeout, server.filter_mapping, server.display_name) == (
        ("x",),
        30000,
        "markdown",
        "Mine",
    )
    assert server.extra == {"oauthClientId": "id", "oauthPublicClient": False}
    assert (found.servers["r"].type, found.servers["r"].headers) == ("sse", {"H": "v"})
    assert found.servers["h"].tools == ("*",)
    assert found.problems == ()


def test_an_empty_list_of_tools_means_none(tmp_path: Path) -> None:
    write(tmp_path / "repo/.mcp.json", servers(a={"command": "a", "tools": []}))
    assert find(tmp_path).servers["a"].tools == ()


def test_an_entry_is_known_by_what_is_written_not_by_what_is_filled_in(tmp_path: Path) -> None:
    write(tmp_path / "repo/.mcp.json", servers(a={"command": "a", "env": {"K": "$KEY"}}))
    digests = {find(tmp_path, KEY=key).servers["a"].digest for key in ("one", "two")}
    assert len(digests) == 1
    write(tmp_path / "repo/.mcp.json", servers(a={"command": "a", "env": {"K": "other"}}))
    assert find(tmp_path, KEY="one").servers["a"].digest not in digests


@pytest.mark.proves("MCP-05")
def test_variables_are_filled_in_everywhere(tmp_path: Path) -> None:
    entry = {
        "command": "$TOOL",
        "args": ["--to=${HOST}:${PORT:-80}", "$$", "a$5"],
        "cwd": "${workspaceFolder}/x",
        "env": {"K": "${SECRET}"},
        "displayName": "${env:TOOL}!",
    }
    write(tmp_path / "repo/.mcp.json", servers(one=entry))
    found = find(tmp_path, TOOL="npx", HOST="h")
    server = found.servers["one"]
    assert (server.command, server.args) == ("npx", ("--to=h:80", "$$", "a$5"))
    assert server.cwd == str(tmp_path / "repo/x")
    assert (server.env, server.display_name) == ({"K": ""}, "npx!")
    assert [problem.message for problem in found.problems] == [
        "server one: the variable SECRET is not set"
    ]


def test_fields_of_other_vendors_are_mapped_or_named(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.codex/config.toml",
        'model = "x"\n[mcp_servers.codex]\nurl = "https://c"\nbearer_token_env_var = "TOK"\n'
        "tool_timeout_sec = 2.5\nenabled_tools = ['a']\nrequired = true\n",
    )
    gemini = {
        "httpUrl": "https://g",
        "trust": True,
        "includeTools": ["t"],
        "excludeTools": ["u"],
        "new": 1,
    }
    write(tmp_path / "home/.gemini/settings.json", servers(gemini=gemini))
    found = find(tmp_path, TOK="secret")
    codex = found.servers["codex"]
    assert (codex.type, codex.headers, codex.timeout, codex.tools) == (
        "http",
        {"Authorization": "Bearer secret"},
        2500,
        ("a",),
    )
    assert (found.servers["gemini"].url, found.servers["gemini"].tools) == ("https://g", ("t",))
    named = " ".join(problem.message for problem in found.problems)
    for field in ("required", "trust", "the field new"):
        assert field in named
    assert all(problem.note for problem in found.problems)


@pytest.mark.parametrize(
    "entry",
    [{}, [], "text", {"type": "telepathy", "command": "x"}, {"command": "x", "args": "no list"}],
)
def test_an_entry_that_cannot_be_used_is_one_problem_and_the_rest_loads(
    tmp_path: Path, entry: Any
) -> None:
    write(tmp_path / "repo/.mcp.json", servers(bad=entry, good={"command": "x"}))
    found = find(tmp_path)
    assert list(found.servers) == ["good"]
    assert [problem.note for problem in found.problems] == [False]


def test_a_broken_file_names_the_line(tmp_path: Path) -> None:
    write(tmp_path / "repo/.mcp.json", '{\n "mcpServers": {\n  "a": }\n}\n')
    (problem,) = find(tmp_path).problems
    assert problem.line == 3


@given(st.text(alphabet="${}:-VAR_ x", max_size=30))
def test_no_text_makes_filling_in_fail(text: str) -> None:
    expansion = Expansion({"VAR": "value"}, "/folder")
    filled = expansion.fill({"key": [text]})["key"][0]
    if "$" not in text:
        assert filled == text
