"""Agents that work for another one, in runs of the installed program."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import trimtab
from clikit import Cli, Outcome, bash, serving
from customizekit import write
from hookkit import keeping, kept, saying, write_hooks
from trimtab.customize.agents import find_agents
from trimtab.tools.catalog import NAMES
from trimtab.tools.task.tool import BUILTIN as OFFERED
from trimtab.tools.task.tool import SPEC

BUILTIN = Path(trimtab.__file__).parent / "customize" / "builtin"
DONE = {"text": "All done."}
EDITOR = """---
name: editor
description: Writes files.
tools: ["create", "bash"]
---
You write files in {{cwd}}.
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def start(agent: str = "general-purpose", prompt: str = "Do it.", **more: Any) -> dict[str, Any]:
    arguments = {"description": "a part of it", "prompt": prompt, "agent_type": agent, **more}
    return {"name": "task", "arguments": arguments}


def told(outcome: Outcome) -> list[str]:
    """What the main agent was told about its calls."""
    done = [
        line["data"]
        for line in outcome.lines
        if line["type"] == "tool.execution_complete" and "agentId" not in line
    ]
    return [(one.get("result") or {}).get("content") or one["error"]["message"] for one in done]


def refused(outcome: Outcome) -> list[str]:
    """Why calls of sub-agents did not happen."""
    return [
        line["data"]["error"]["message"]
        for line in outcome.lines
        if line["type"] == "tool.execution_complete" and "agentId" in line
        if not line["data"]["success"]
    ]


def words(body: Any) -> list[str]:
    """The conversation of a request, without its system message."""
    return [message.get("content") or "" for message in body["messages"][1:]]


@pytest.mark.proves("SUB-10", "SUB-12", "SUB-14", "SUB-16", "AGENT-09")
async def test_an_agent_has_its_own_conversation_and_its_last_words_are_the_result(
    cli: Cli,
) -> None:
    (cli.cwd / "a.py").write_text("def f(): ...\n")
    script = [
        {"tools": [start("explore", "Where is f?")]},
        {"text": "Let me look.", "tools": [{"name": "grep", "arguments": {"pattern": "def f"}}]},
        {"text": "f is in a.py."},
        DONE,
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("Find f.")
        bodies = [request.json for request in server.requests]
    assert told(outcome) == ["f is in a.py."]
    assert [len(words(body)) for body in bodies] == [1, 1, 3, 3]
    assert words(bodies[1]) == ["Where is f?"]
    assert "explores code" in bodies[1]["messages"][0]["content"]
    assert words(bodies[3])[-1] == "f is in a.py."
    lines = [line for line in outcome.lines if line.get("agentId")]
    assert len({line["agentId"] for line in lines}) == 1
    (started,), (completed,) = outcome.of("subagent.started"), outcome.of("subagent.completed")
    assert (started["agentName"], started["agentDisplayName"]) == ("explore", "Explore")
    assert completed["toolCallId"] == started["toolCallId"]
    assert (completed["totalToolCalls"], completed["model"]) == (1, "scripted")
    said = [line["data"] for line in lines if line["type"] == "assistant.message"]
    assert {one["parentToolCallId"] for one in said} == {started["toolCallId"]}
    assert outcome.result["status"] == "success"


@pytest.mark.proves("SUB-08", "SUB-11", "SUB-15", "PERM-03")
async def test_each_kind_of_agent_has_its_own_tools(cli: Cli) -> None:
    kinds = ("explore", "general-purpose")
    script = [{"tools": [start(kind) for kind in kinds]}, *[DONE] * 3]
    async with serving(script) as server:
        await cli.use(server).ask("go", "--excluded-tools", "sql")
        bodies = {words(one.json)[0]: one.json for one in server.requests[1:3]}
        offered = [
            {tool["function"]["name"] for tool in one.json["tools"]} for one in server.requests[:3]
        ]
    assert bodies
    main, *agents = offered
    explore, general = sorted(agents, key=len)
    assert explore == {"view", "grep", "glob"}
    assert general == main
    assert "sql" not in main
    sizes = [len(one.json["messages"][0]["content"]) for one in server.requests[:3]]
    assert min(sizes) < max(sizes) / 2


@pytest.mark.parametrize("agent", ["code-review", "research"])
async def test_agents_that_only_read_change_nothing(cli: Cli, agent: str) -> None:
    script = [{"tools": [start(agent)]}, {"tools": [bash("touch made")]}, DONE, DONE]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
    assert "This agent is read-only: shell 'touch made'" in refused(outcome)[0]
    assert list(cli.cwd.iterdir()) == []
    assert outcome.code == 0


RULES = [
    ("a rule that denies", ["--deny-tool", "shell(touch)"], {}, "shell(touch)"),
    ("plan mode", ["--plan"], {}, "Plan mode"),
    ("a hook", [], {"preToolUse": [saying({"permissionDecision": "deny"})]}, "Denied by preToolUse"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "flags", "hooks", "reason"), RULES, ids=[row[0] for row in RULES])
async def test_rules_hold_for_agents_below_agents(
    cli: Cli, _: str, flags: list[str], hooks: Any, reason: str
) -> None:
    if hooks:
        hooks["preToolUse"][0]["matcher"] = "bash"
        write_hooks(cli, hooks, "user")
    script = [
        {"tools": [start()]},
        {"tools": [start()]},
        {"tools": [bash("touch made")]},
        *[DONE] * 3,
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", *flags)
    assert reason in refused(outcome)[0]
    assert list(cli.cwd.iterdir()) == []
    assert len({line.get("agentId") for line in outcome.lines}) == 3


@pytest.mark.proves("AGENT-08")
async def test_an_agent_for_models_only_cannot_be_chosen_by_a_person(cli: Cli) -> None:
    text = EDITOR.replace("name: editor", "name: inner\nuser-invocable: false")
    write(cli.home / "agents" / "inner.agent.md", text)
    async with serving([{"tools": [start("inner")]}, DONE, DONE]) as server:
        refused = await cli.use(server).ask("go", "--agent", "inner")
        assert not server.requests
        outcome = await cli.ask("go")
    assert refused.code == 2
    assert "inner" in refused.result["error"]["message"]
    assert outcome.of("subagent.started")[0]["agentName"] == "inner"


@pytest.mark.proves("SUB-09")
async def test_the_task_tool_takes_a_prompt_a_description_a_kind_a_model_and_a_mode(
    cli: Cli,
) -> None:
    async with serving([DONE]) as server:
        await cli.use(server).ask("go")
        offered = server.requests[0].json["tools"]
    (task,) = [one["function"] for one in offered if one["function"]["name"] == "task"]
    properties = task["parameters"]["properties"]
    assert {"prompt", "description", "agent_type"} <= set(task["parameters"]["required"])
    assert not {"model", "mode"} & set(task["parameters"]["required"])
    assert properties["mode"]["enum"] == ["sync", "background"]
    assert properties["model"]["type"] == "string"
    kinds = {"explore", "task", "general-purpose", "code-review"}
    assert kinds <= set(properties["agent_type"]["enum"])


@pytest.mark.proves("AGENT-08", "AGENT-09")
async def test_custom_agents_are_offered_unless_their_files_say_no(cli: Cli) -> None:
    write(cli.home / "agents" / "editor.agent.md", EDITOR)
    hidden = EDITOR.replace("name: editor", "name: shy\ndisable-model-invocation: true")
    write(cli.home / "agents" / "shy.agent.md", hidden)
    create = {"name": "create", "arguments": {"path": "x.txt", "file_text": "x\n"}}
    script = [{"tools": [start("editor"), start("shy")]}, {"tools": [create]}, *[DONE] * 2]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        bodies = [request.json for request in server.requests]
    (task,) = [one["function"] for one in bodies[0]["tools"] if one["function"]["name"] == "task"]
    assert "- editor: Writes files." in task["description"]
    kinds = task["parameters"]["properties"]["agent_type"]["enum"]
    assert kinds[-1] == "editor"
    assert "explore" in kinds
    assert "shy" not in kinds
    assert f"You write files in {cli.cwd}" in bodies[1]["messages"][0]["content"]
    assert {one["function"]["name"] for one in bodies[1]["tools"]} >= {"create", "bash"}
    assert "edit" not in {one["function"]["name"] for one in bodies[1]["tools"]}
    assert (cli.cwd / "x.txt").read_text() == "x\n"
    assert "received 'shy'" in told(outcome)[0]


@pytest.mark.proves("SUB-13", "HOOK-11")
async def test_a_hook_may_send_an_agent_back_to_work(cli: Cli) -> None:
    block = {"decision": "block", "reason": "Once more."}
    once = f"test -e seen || {{ touch seen; echo '{json.dumps(block)}'; }}"
    hooks = {
        "subagentStart": [saying({"additionalContext": "Mind the gap."})],
        "subagentStop": [keeping("stop"), {"bash": once}],
    }
    write_hooks(cli, hooks, "user")
    script = [{"tools": [start("task")]}, {"text": "First."}, {"text": "Second."}, DONE]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        bodies = [request.json for request in server.requests]
    assert words(bodies[1]) == ["Mind the gap.", "Do it."]
    assert words(bodies[2])[-2:] == ["First.", "Once more."]
    assert told(outcome) == ["Second."]
    given = kept(cli, "stop")
    assert (given["agentName"], given["agentDisplayName"]) == ("task", "Task")
    (log,) = cli.logs()
    lines = map(json.loads, log.read_text().splitlines())
    hooked = [line for line in lines if line["type"] == "hook.end"]
    assert [bool(line.get("agentId")) for line in hooked] == [True] * 5


async def test_an_agent_stops_at_its_slice_of_the_budget_and_its_caller_goes_on(cli: Cli) -> None:
    usage = {"input": 1000, "output": 500}
    looks = {"tools": [{"name": "glob", "arguments": {"pattern": "*"}}], "usage": usage}
    script = {
        "replies": [{"tools": [start()], "usage": usage}, *[looks] * 20],
        "otherwise": {**DONE, "usage": usage},
    }
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--max-tokens", "30000")
        spent = server.usage.input_tokens + server.usage.output_tokens
    assert "did not finish: Stopped at the budget" in told(outcome)[0]
    assert outcome.of("subagent.failed")[0]["totalTokens"] <= 15_000
    assert spent <= 30_000
    assert sum(outcome.result["usage"]["tokens"][kind] for kind in ("input", "output")) == spent


async def test_a_limit_on_turns_counts_those_of_all_agents(cli: Cli) -> None:
    looks = {"tools": [{"name": "glob", "arguments": {"pattern": "*"}}]}
    async with serving([{"tools": [start()]}, *[looks] * 20]) as server:
        outcome = await cli.use(server).ask("go", "--max-turns", "4")
        assert server.usage.requests == 4
    assert outcome.code == 6


async def test_agents_start_agents_only_so_deep_and_so_many(cli: Cli) -> None:
    write(cli.home / "settings.json", '{"subagents": {"maxDepth": 2, "maxConcurrency": 2}}')
    script = [
        {"tools": [start()]},
        {"tools": [start(), start()]},
        {"tools": [start()]},
        *[DONE] * 3,
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        offered = [
            "task" in {tool["function"]["name"] for tool in request.json["tools"]}
            for request in server.requests[:3]
        ]
    assert offered == [True, True, False]
    assert any("No more than 2 agents may run at once" in text for text in refused(outcome))
    assert "Tool 'task' does not exist." in refused(outcome)


async def test_agents_are_counted_over_a_prompt_whatever_their_depth(cli: Cli) -> None:
    """Agents that started agents made thousands of requests: only depth and width were bounded."""
    write(cli.home / "settings.json", '{"subagents": {"maxAgents": 3}}')
    async with serving({"replies": [], "otherwise": {"tools": [start()]}}) as server:
        outcome = await cli.use(server).ask("go", "--max-turns", "40")
    assert len(outcome.of("subagent.started")) == 3
    assert any("3 agents were started for this prompt" in text for text in refused(outcome))


async def test_an_agent_that_was_refused_does_not_count_as_started(cli: Cli) -> None:
    write(cli.home / "settings.json", '{"subagents": {"maxConcurrency": 1, "maxAgents": 2}}')
    twice = {"tools": [start(), start()]}
    script = [{"tools": [start()]}, twice, DONE, {"tools": [start()]}, *[DONE] * 2]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
    assert len(outcome.of("subagent.started")) == 2
    assert len(refused(outcome)) == 2


async def test_a_model_for_agents_is_used_for_them_alone(cli: Cli) -> None:
    async with serving([{"tools": [start()]}, *[DONE] * 2]) as server:
        cli.use(server)
        settings = {"subagents": {"agents": {"general-purpose": {"model": "small"}}}}
        write(cli.home / "settings.json", json.dumps(settings))
        outcome = await cli.ask("go")
        used = [request.json["model"] for request in server.requests]
    assert used == ["scripted", "small", "scripted"]
    assert outcome.of("subagent.started")[0]["model"] == "small"


async def test_what_an_agent_changed_is_undone_with_the_turn(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_text("before\n")
    script = [{"tools": [start()]}, {"tools": [bash("echo after > a.txt")]}, *[DONE] * 2]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
    assert (cli.cwd / "a.txt").read_text() == "after\n"
    session = outcome.result["sessionId"]
    undone = await cli.run("undo", session)
    assert undone.code == 0, undone.notes
    assert (cli.cwd / "a.txt").read_text() == "before\n"


async def test_an_agent_that_is_not_there_and_a_service_that_fails_are_told(cli: Cli) -> None:
    broken = {"error": {"status": 400, "message": "no"}}
    async with serving([{"tools": [start()]}, broken, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert "The agent general-purpose did not finish" in told(outcome)[0]
    assert outcome.of("subagent.failed")[0]["agentName"] == "general-purpose"
    assert outcome.code == 0


FIELDS = ("name", "displayName", "description", "tools", "prompt")
SAYS = [
    ("explore", ("300 words", "into one reply", "one to three")),
    ("task", ("in one line", "exit code", "Do not try to fix")),
    ("code-review", ("bugs, security", "No remarks on style", "No significant issues found")),
]


@pytest.mark.proves("SUB-01", "SUB-03", "SUB-06", "SUB-07")
@pytest.mark.parametrize(("agent", "wanted"), SAYS, ids=[row[0] for row in SAYS])
async def test_built_in_agents_are_data_and_are_told_how_to_answer(
    cli: Cli, agent: str, wanted: tuple[str, ...]
) -> None:
    definition = yaml.safe_load((BUILTIN / f"{agent}.agent.yaml").read_text())
    assert set(FIELDS) <= set(definition)
    async with serving([{"tools": [start(agent)]}, *[DONE] * 2]) as server:
        await cli.use(server).ask("go")
        system = server.requests[1].json["messages"][0]["content"]
    assert [text for text in wanted if text not in system] == []


CLAUDE = ["claude-opus-4.5", "claude-haiku-4.5", "claude-sonnet-4.5"]
SERVICES: list[tuple[str, str, list[str], str]] = [
    ("explore", "claude-opus-4.5", CLAUDE, "claude-haiku-4.5"),
    ("task", "gpt-5", CLAUDE, "claude-haiku-4.5"),
    ("code-review", "gpt-5", CLAUDE, "claude-sonnet-4.5"),
    ("explore", "claude-x", ["claude-x", "claude-haiku-3", "claude-haiku-6"], "claude-haiku-6"),
    ("explore", "gpt-5", ["gpt-5", "gpt-4.1-mini", "gpt-5-mini"], "gpt-5-mini"),
    ("task", "gemini-3-pro", ["gemini-3-pro", "gemini-3-flash"], "gemini-3-flash"),
    ("code-review", "gpt-5", ["gpt-5", "gpt-5-mini"], "gpt-5"),
    ("explore", "qwen", ["qwen", "qwen-mini"], "qwen"),
    ("general-purpose", "gpt-5", CLAUDE, "gpt-5"),
]


@pytest.mark.proves("SUB-02", "SUB-04", "SUB-05")
@pytest.mark.parametrize(("agent", "session", "listed", "used"), SERVICES)
async def test_built_in_agents_use_their_model_or_the_nearest_of_the_same_service(
    cli: Cli, agent: str, session: str, listed: list[str], used: str
) -> None:
    script = {"models": listed, "replies": [{"tools": [start(agent)]}, *[DONE] * 2]}
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--model", session)
        asked = server.requests[1].json
    assert asked["model"] == used
    tools = {
        tool.get("function", tool).get("name") or tool["custom"]["name"] for tool in asked["tools"]
    }
    if agent == "explore":
        assert tools <= {"grep", "rg", "glob", "view", "lsp"}
    else:
        assert {"bash", "view", "sql"} <= tools
    told = [data["message"] for data in outcome.of("session.info")
            if data["infoType"] == "agent_model"]  # fmt: skip
    wanted = {"explore": "claude-haiku-4.5", "task": "claude-haiku-4.5",
              "code-review": "claude-sonnet-4.5"}.get(agent, used)  # fmt: skip
    assert bool(told) is (used != wanted)
    assert all(f"it uses {used}" in text for text in told)


async def test_the_models_a_person_configures_come_before_those_of_built_in_agents(
    cli: Cli,
) -> None:
    settings = {"subagents": {"agents": {"explore": {"model": "mine"}}}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    script = {"models": CLAUDE, "replies": [{"tools": [start("explore")]}, *[DONE] * 2]}
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        assert server.requests[1].json["model"] == "mine"
    assert not [one for one in outcome.of("session.info") if one["infoType"] == "agent_model"]


def test_built_in_agents_name_no_tool_that_does_not_exist() -> None:
    for agent in find_agents([]).agents.values():
        assert set(agent.tools or ()) <= set(NAMES), agent.name


async def test_a_hook_that_stops_an_agent_stops_the_one_that_asked(cli: Cli) -> None:
    halt = saying({"continue": False, "stopReason": "enough"}) | {"matcher": "bash"}
    write_hooks(cli, {"preToolUse": [halt]}, "user")
    script = [{"tools": [start()]}, {"tools": [bash("true")]}, *[DONE] * 3]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        assert server.usage.requests == 2
    assert outcome.result["stopReason"] == "blocked"


async def test_many_agents_at_once_are_refused_not_queued(cli: Cli) -> None:
    calls = [start("explore", f"Part {n}") for n in range(12)]
    async with serving({"replies": [{"tools": calls}], "otherwise": DONE}) as server:
        outcome = await cli.use(server).ask("go")
        assert server.usage.requests == 10
    assert sum("No more than 8 agents may run at once" in text for text in told(outcome)) == 4
    assert len(outcome.of("subagent.completed")) == 8


def test_the_agents_a_model_is_told_of_are_those_there_are() -> None:
    """Their names stand in the tool as well, so that no file is read before one is started."""
    files = {path.name.removesuffix(".agent.yaml") for path in BUILTIN.glob("*.agent.yaml")}
    assert set(OFFERED) == files
    assert all(f"- {name}:" in SPEC.description for name in files)


@pytest.mark.parametrize(("args", "times"), [((), 25), (("--max-repeats", "4"), 4)])
async def test_an_agent_that_repeats_one_call_is_ended_and_its_caller_goes_on(
    cli: Cli, args: tuple[str, ...], times: int
) -> None:
    view = {"name": "view", "arguments": {"path": "."}}
    script = [
        {"tools": [start(prompt="Go round in circles.")]},
        {"tools": [view], "repeat": times},
        DONE,
        DONE,
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", *args)
        assert server.usage.requests == times + 2
    assert outcome.code == 0, outcome.notes
    (answer,) = told(outcome)
    assert f"view was called {times} times" in answer
    failed = outcome.of("subagent.failed")
    assert len(failed) == 1
