"""Custom agents: fields, priorities, and the ones that come with the program."""

from pathlib import Path

import pytest

from customizekit import places_in, write
from trimtab.contracts.customization import FoundAgents
from trimtab.customize.agents import find_agents, map_tools
from trimtab.customize.folders import agent_folders

ROWS = [
    ("repo/.github/agents", "repository", "project"),
    ("repo/.claude/agents", "claude", "project"),
    ("home/.copilot/agents", "user", "user"),
    ("home/.github/agents", "user", "user"),
    ("home/.claude/agents", "claude", "user"),
]
WHOLE = """---
name: The Planner
displayName: Planner
description: Plans
tools: Read, Bash(git log:*), mcp-server/tool
model: [first-model, second-model]
modelPolicy: required
reasoningEffort: high
mcp-servers:
  db:
    command: npx
skills: [one, two]
infer: false
user-invocable: true
include-custom-instructions: true
hooks:
  preToolUse: []
---
Plan in {{cwd}}.
"""


def find(folder: Path) -> FoundAgents:
    return find_agents(agent_folders(places_in(folder)), builtin=False)


@pytest.mark.parametrize(("name", "source", "origin"), ROWS)
@pytest.mark.parametrize("suffix", [".md", ".agent.md"])
def test_an_agent_of_every_row_is_found(
    tmp_path: Path, name: str, source: str, origin: str, suffix: str
) -> None:
    path = write(tmp_path / name / f"one{suffix}", "---\ndescription: d\n---\nBe one.\n")
    (agent,) = find(tmp_path).agents.values()
    assert (agent.name, agent.path, agent.source) == ("one", str(path), source)
    assert (agent.origin, agent.prompt) == (origin, "Be one.")


def test_every_field_is_read(tmp_path: Path) -> None:
    write(tmp_path / "repo/.github/agents/planner.agent.md", WHOLE)
    found = find(tmp_path)
    agent = found.agents["planner"]
    assert (agent.alias, agent.display_name, agent.description) == (
        "The Planner",
        "Planner",
        "Plans",
    )
    assert agent.tools is not None
    assert agent.tools[:2] == ("view", "bash")
    assert agent.tools[-1] == "mcp-server/tool"
    assert (agent.models, agent.model_policy) == (("first-model", "second-model"), "required")
    assert agent.effort == "high"
    assert agent.mcp_servers == {"db": {"command": "npx"}}
    assert agent.skills == ("one", "two")
    assert (agent.model_invocable, agent.user_invocable) == (False, True)
    assert agent.include_instructions
    assert agent.hooks == {"preToolUse": []}
    assert found.problems == ()
    assert found.find("the planner") is agent


def test_priorities_decide_and_are_named(tmp_path: Path) -> None:
    for name, _, _ in ROWS:
        write(tmp_path / name / "one.md", f"plain {name}")
        write(tmp_path / name / "one.agent.md", f"agent {name}")
    found = find(tmp_path)
    assert found.agents["one"].prompt == "agent repo/.github/agents"
    assert len(found.shadowed) == 2 * len(ROWS) - 1
    assert found.shadowed[0].why == "NAME.agent.md wins over NAME.md"


def test_an_agent_whose_head_is_broken_is_left_out_for_it_would_have_every_tool(
    tmp_path: Path,
) -> None:
    write(tmp_path / "repo/.github/agents/bad.md", "---\ntools: [view\n---\nbody\n")
    write(tmp_path / "repo/.github/agents/empty.md", "")
    write(tmp_path / "repo/.github/agents/good.md", "---\ncolor: red\nmodel: sonnet\n---\nbody\n")
    found = find(tmp_path)
    assert list(found.agents) == ["good"]
    assert found.agents["good"].models == ("sonnet",)
    messages = [(Path(problem.file).name, problem.line, problem.note) for problem in found.problems]
    assert messages == [
        ("bad.md", 3, False),
        ("empty.md", 0, False),
        ("good.md", 2, True),
        ("good.md", 3, True),
    ]


@pytest.mark.proves("AGENT-03")
def test_the_built_in_agents_are_data_and_whole() -> None:
    found = find_agents([])
    assert list(found.agents) == ["code-review", "explore", "general-purpose", "research", "task"]
    assert found.problems == ()
    for agent in found.agents.values():
        assert agent.source == "builtin"
        assert agent.description
        assert "{{cwd}}" in agent.prompt
    assert found.agents["general-purpose"].tools is None
    assert not {"edit", "create"} & set(found.agents["explore"].tools or ())


def test_all_tools_stay_all_tools() -> None:
    assert map_tools(None) is None
    assert map_tools(["view", "*"]) is None
    assert map_tools([]) == ()


def test_agents_of_codex_gemini_and_cursor_are_read_by_their_own_names(tmp_path: Path) -> None:
    write(
        tmp_path / "repo/.codex/agents/auditor.toml",
        'name = "auditor"\ndescription = "d"\ndeveloper_instructions = "Look."\n'
        'model = "gpt-5"\nmodel_reasoning_effort = "high"\nsandbox_mode = "read-only"\n',
    )
    head = "---\nkind: local\nname: t\ndescription: d\ntools: [read_file, run_shell_command]\n---\n"
    write(tmp_path / "repo/.gemini/agents/tester.md", head + "Test.")
    write(tmp_path / "repo/.gemini/agents/far.md", "---\nkind: remote\nname: far\n---\n")
    write(tmp_path / "repo/.cursor/agents/reader.md", "---\nreadonly: true\n---\nRead.")
    write(tmp_path / "repo/.codex/agents/broken.toml", "name = \n")
    found = find(tmp_path)
    assert set(found.agents) == {"auditor", "tester", "reader"}
    auditor, tester = found.agents["auditor"], found.agents["tester"]
    assert (auditor.prompt, auditor.models, auditor.effort) == ("Look.", ("gpt-5",), "high")
    for agent in (auditor, found.agents["reader"]):
        assert agent.tools is not None
        assert "view" in agent.tools
        assert not {"bash", "edit", "create"} & set(agent.tools)
    assert tester.tools is not None
    assert {"view", "bash"} <= set(tester.tools)
    assert {
        (Path(problem.file).name, problem.line) for problem in found.problems if not problem.note
    } == {("broken.toml", 1)}
    assert [problem.field for problem in found.problems if problem.file.endswith("far.md")] == [
        "kind"
    ]


def test_tools_that_are_denied_and_servers_in_a_list_are_read(tmp_path: Path) -> None:
    head = (
        "---\ntools: search/codebase, edit/editFiles\ndisallowedTools: Write, Bash(rm *)\n"
        "mcpServers:\n  - team\n  - inline: {command: x}\n---\n"
    )
    write(tmp_path / "repo/.claude/agents/a.md", head + "Be.")
    agent = find(tmp_path).agents["a"]
    assert agent.tools == ("grep", "glob", "edit", "create")
    assert {"create", "bash"} <= set(agent.denied_tools)
    assert agent.mcp_servers == {"inline": {"command": "x"}}


def test_tools_that_no_tool_is_called_are_noted_with_their_line(tmp_path: Path) -> None:
    write(
        tmp_path / "repo/.github/agents/a.agent.md",
        "---\ndescription: x\ntools: [Read, web, Bash(git:*), vieww, WebSearch, gh/issues, '*']\n"
        "disallowedTools: [mcp__gh__merge, edit]\n---\nx\n",
    )
    known = ("view", "bash", "edit", "create", "web_fetch")
    found = find_agents(agent_folders(places_in(tmp_path)), builtin=False, known_tools=known)
    assert [
        (problem.message.partition(":")[0], problem.line, problem.note)
        for problem in found.problems
    ] == [
        ("there is no built-in tool vieww", 3, True),
        ("there is no built-in tool WebSearch", 3, True),
    ]


def test_an_agent_with_a_field_given_twice_is_used_with_the_last(tmp_path: Path) -> None:
    file = tmp_path / "repo/.github/agents/a.agent.md"
    write(file, "---\ndescription: x\ntools: [bash]\ntools: [view]\n---\nx\n")
    found = find(tmp_path)
    assert found.agents["a"].tools == ("view",)
    assert [problem.sentence for problem in found.problems] == [
        f"{file}:4: the field tools is given twice: the last one counts"
    ]


@pytest.mark.parametrize(
    "field",
    [
        "tools: [1]",
        "tools: {view: true}",
        "tools: 5",
        "tool: [view]",
        "Tools: [view]",
        "toools: [view]",
        "allowed-tools: [view]",
        "allowedTools: view",
        "disallowed-tools: [bash]",
        "disallowedTool: [bash]",
        "disallowedTools: 5",
        "disallowedTools: [[bash]]",
        "disallowedTools: [bahs]",
        "excludedTools: [bash]",
        "too\u200bls: [view]",
    ],
)
def test_an_agent_that_would_have_more_tools_than_its_file_means_is_left_out(
    tmp_path: Path, field: str
) -> None:
    write(tmp_path / "repo/.github/agents/a.agent.md", f"---\ndescription: x\n{field}\n---\nx\n")
    found = find(tmp_path)
    assert "a" not in found.agents
    assert any("is left out" in problem.message for problem in found.problems)
