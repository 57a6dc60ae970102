"""What is sent to the model: shown before, counted by part, shaped by flags, agents and room."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from customizekit import write
from trimtab.providers.tokens import counter_for

HELLO = [{"text": "Hello."}] * 3
DONE = {"name": "task_complete", "arguments": {"summary": "done"}}
TRUST = {"COPILOT_ALLOW_ALL": "true"}
AGENT = """---
description: checks prices
tools: [view, bash]
model: [scripted, other]
modelPolicy: required
mcp-servers:
  prices: {command: prices-server}
hooks:
  preToolUse:
    - {type: command, bash: "touch ran-by-agent"}
---
You check prices in {{cwd}}.
"""


def system_of(request: Any) -> str:
    return str(request.json["messages"][0]["content"])


def warnings(outcome: Outcome, kind: str) -> list[str]:
    told = outcome.of("session.warning")
    return [one["message"] for one in told if one["warningType"] == kind]


@pytest.mark.parametrize("window", ["", "4096"])
@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("--agent", "prices"),
        ("--agent", "explore"),
        ("--no-custom-instructions",),
        ("--mode", "plan"),
        ("--mode", "autopilot"),
        ("--excluded-tools", "bash,edit"),
        ("--available-tools", "view,grep"),
        ("--model", "gpt-5"),
    ],
)
async def test_what_is_shown_is_what_is_sent(cli: Cli, extra: tuple[str, ...], window: str) -> None:
    write(cli.cwd / "AGENTS.md", "Prices are in cents.")
    write(cli.cwd / ".github/agents/prices.md", AGENT)
    write(cli.cwd / ".github/skills/s/SKILL.md", "---\ndescription: d\n---\nb")
    write(cli.home / "settings.json", '{"memory": true}')
    async with serving([{"text": "Hello.", "tools": [DONE]}] * 3) as server:
        cli.use(server).env |= TRUST
        if window:
            cli.env["COPILOT_PROVIDER_MAX_PROMPT_TOKENS"] = window
        shown = json.loads((await cli.run("prompt", "show", "--json", *extra, "hi there")).text)
        await cli.ask("hi there", *extra)
        request = server.requests[0]
    assert shown["model"] == request.json["model"]
    assert shown["system"] == system_of(request)
    sent = [tool[tool["type"]] for tool in request.json.get("tools", ())]
    for mine, one in zip(shown["tools"], sent, strict=True):
        assert (mine["name"], mine["description"]) == (one["name"], one["description"])
        assert mine["parameters"] == one.get("parameters", mine["parameters"])
    user = request.json["messages"][1]["content"]
    assert shown["user"].split("\n")[1:] == user.split("\n")[1:], "all but the time"
    assert shown["tokens"] == sum(part["tokens"] for part in shown["parts"])
    left_out = (
        extra[:1] == ("--no-custom-instructions",) or "custom_instructions" in shown["leftOut"]
    )
    assert ("Prices are in cents." in shown["system"]) == (not left_out)


async def test_two_prompts_are_compared(cli: Cli) -> None:
    write(cli.cwd / "AGENTS.md", "Prices are in cents.")
    outcome = await cli.run("prompt", "diff", "model:x", "agent:explore+no-instructions+model:x")
    assert outcome.code == 0, outcome.notes
    assert "-Prices are in cents." in outcome.text
    assert "-tool edit" in outcome.text
    assert "+You are an agent that explores code" in outcome.text
    assert "→       0  system: custom_instructions" in outcome.text
    wrong = await cli.run("prompt", "diff", "default", "nonsense")
    assert wrong.code == 2
    assert "'nonsense' does not describe a prompt" in wrong.notes


async def test_a_command_stands_for_its_text_and_a_mode_must_exist(cli: Cli) -> None:
    write(cli.cwd / ".claude/commands/fix.md", "Fix issue $1 now.")
    outcome = await cli.run("prompt", "show", "--trust-folder", "/fix 12")
    assert "Fix issue 12 now." in outcome.text
    assert (await cli.run("prompt", "show", "--mode", "dancing")).code == 2


async def test_context_and_prompt_show_have_the_same_figures(cli: Cli) -> None:
    async with serving(HELLO) as server:
        cli.use(server)
        shown = json.loads((await cli.run("prompt", "show", "--json")).text)
        context = (await cli.run("-p", "/context")).text
    for part in shown["parts"]:
        assert f"{part['tokens']:>8,}  {part['name']}\n" in context + "\n"


async def test_customizations_are_listed_in_a_session(cli: Cli) -> None:
    write(cli.cwd / "AGENTS.md", "x")
    write(cli.cwd / ".github/skills/s/SKILL.md", "---\ndescription: d\n---\nb")
    async with serving(HELLO) as server:
        listed = (await cli.use(server).run("-p", "/customizations")).text
    assert "instruction AGENTS.md (repository)\n" in listed
    assert "skill s (repository) not used" in listed


@pytest.mark.proves("FLAG-04")
async def test_feature_flags_are_known_before_the_prompt_is_made(cli: Cli) -> None:
    flags = {"COPILOT_CLI_ENABLED_FEATURE_FLAGS": "CODE_SCANNING"}
    async with serving(HELLO) as server:
        await cli.use(server).ask("hi", env=flags)
        await cli.ask("hi", "--experimental")
        with_flag, without = map(system_of, server.requests)
    assert "Code scanning is on" in with_flag
    assert "Code scanning is on" not in without
    both = await cli.run("-p", "x", "--experimental", "--no-experimental")
    assert both.code == 2


async def test_a_small_window_gets_a_shorter_prompt_and_an_event_says_so(cli: Cli) -> None:
    small = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "4096"}
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", env=small)
        short = system_of(server.requests[0])
    (message,) = warnings(outcome, "prompt_shortened")
    assert "4,096 tokens" in message
    assert "guidelines" in message
    assert "<guidelines>" not in short
    assert "<environment_limitations>" in short
    assert len(short) <= 4096 + 100


async def test_an_agent_brings_its_own_hooks_and_servers(cli: Cli) -> None:
    write(cli.cwd / ".github/agents/prices.md", AGENT)
    async with serving([{"tools": [bash("true")]}, {"text": "ok"}]) as server:
        outcome = await cli.use(server).ask("hi", "--agent", "prices", "--trust-folder")
    assert (cli.cwd / "ran-by-agent").exists()
    servers = outcome.of("session.mcp_servers_loaded")[-1]["servers"]
    assert [one["name"] for one in servers] == ["prices"]


async def test_hooks_of_an_agent_do_not_run_without_it(cli: Cli) -> None:
    write(cli.cwd / ".github/agents/prices.md", AGENT)
    async with serving([{"tools": [bash("true")]}, {"text": "ok"}]) as server:
        await cli.use(server).ask("hi", "--trust-folder")
    assert not (cli.cwd / "ran-by-agent").exists()


async def test_an_agent_that_requires_a_model_works_with_no_other(cli: Cli) -> None:
    write(cli.cwd / ".github/agents/prices.md", AGENT)
    async with serving(HELLO) as server:
        cli.use(server).env |= TRUST
        refused = await cli.run("-p", "hi", "--agent", "prices", "--model", "third")
        taken = await cli.ask("hi", "--agent", "prices", "--model", "other")
    assert refused.code == 2
    assert "works with scripted or other only" in refused.notes
    assert taken.code == 0


@pytest.mark.proves("PLUG-03")
async def test_hooks_of_a_plugin_are_named_by_path_or_stand_in_the_manifest(cli: Cli) -> None:
    def hook(name: str) -> dict[str, Any]:
        return {"preToolUse": [{"type": "command", "bash": f"touch $HOME/{name}"}]}

    inline = {"name": "inline", "hooks": hook("inline"), "skills": "more", "agents": ["people"]}
    write(cli.cwd / "inline/plugin.json", json.dumps(inline))
    write(cli.cwd / "inline/more/one/SKILL.md", "---\ndescription: d\n---\nb")
    write(cli.cwd / "inline/people/ann.md", "---\ndescription: d\ntools: ['*']\n---\nb")
    named = {"name": "named", "hooks": ["a.json", "b.json"]}
    write(cli.cwd / "named/plugin.json", json.dumps(named))
    for name in ("a", "b"):
        content = {"version": 1, "hooks": hook(name)}
        write(cli.cwd / f"named/{name}.json", json.dumps(content))
    both = ("--plugin-dir", "inline", "--plugin-dir", "named")
    async with serving([{"tools": [bash("true")]}, {"text": "ok"}]) as server:
        outcome = await cli.use(server).ask("hi", *both)
    home = cli.home.parent
    assert [name for name in ("inline", "a", "b") if not (home / name).exists()] == []
    assert [one["name"] for one in outcome.of("session.skills_loaded")[-1]["skills"]] == ["one"]
    assert "ann" in [one["id"] for one in outcome.of("session.custom_agents_updated")[-1]["agents"]]


@pytest.mark.proves("AMPROMPT-01", "AMPROMPT-02")
@pytest.mark.parametrize(
    "text", ["0123456789" * 2000, "漢字仮名交じり文" * 800], ids=["digits", "cjk"]
)
async def test_a_tool_result_takes_at_most_half_of_the_prompt(cli: Cli, text: str) -> None:
    write(cli.cwd / "dense.txt", text)
    window = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "12000"}
    async with serving([{"tools": [bash("cat dense.txt")]}, {"text": "ok"}]) as server:
        outcome = await cli.use(server).ask("read it", env=window)
        sent = server.requests[-1].json["messages"]
    assert outcome.code == 0
    shown = next(one["content"] for one in sent if one["role"] == "tool")
    assert 4_000 < counter_for("scripted").text(shown) <= 6_000
    whole = re.search(r"The whole result is in (.+?\.txt);", shown)
    assert whole is not None
    assert text in Path(whole[1]).read_text()
    assert any(one["role"] == "user" and "read it" in one["content"] for one in sent)


async def test_instructions_leave_half_of_the_window_free(cli: Cli) -> None:
    write(cli.cwd / "AGENTS.md", "Use tabs.\n\n" + "Many words for one thing. " * 20_000)
    write(cli.cwd / "CLAUDE.md", "Answer in rhymes.")
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi")
        system = system_of(server.requests[0])
    assert counter_for("scripted").text(system) < 40_000
    assert "Use tabs." in system
    assert "Answer in rhymes." in system
    assert "[The rest is left out" in system
    (message,) = warnings(outcome, "prompt_shortened")
    assert "leaves out part of custom_instructions" in message


@pytest.mark.parametrize(
    "call",
    [
        {"name": "view", "arguments": {"path": "src/a.py"}},
        {"name": "skill", "arguments": {"skill": "long"}},
    ],
    ids=["instruction", "skill"],
)
async def test_what_comes_while_the_model_works_leaves_room_as_well(cli: Cli, call: Any) -> None:
    long = "First of all, use tabs. " + "Many words for one thing. " * 9_000
    write(cli.cwd / "src/AGENTS.md", long)
    write(cli.cwd / "src/a.py", "x\n")
    write(cli.home / "skills/long/SKILL.md", f"---\ndescription: d\n---\n{long}")
    window = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "40000"}
    async with serving([{"tools": [call]}, {"text": "ok"}]) as server:
        await cli.use(server).ask("go", env=window)
        told = [str(one["content"]) for one in server.requests[-1].json["messages"]]
    (one,) = [one for one in told if "First of all, use tabs." in one]
    assert counter_for("scripted").text(one) < 20_500
    assert "[The rest is left out" in one


@pytest.mark.proves("AMPROMPT-06")
@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("gpt-5", "do not offer to do what was asked"),
        ("claude-sonnet-4.5", "no summaries, notes or example scripts"),
        ("gemini-2.5-pro", "never print code for the user to copy"),
        ("scripted", ""),
    ],
)
async def test_the_family_of_the_model_and_instructions_shape_the_default_prompt(
    cli: Cli, model: str, says: str
) -> None:
    write(cli.cwd / "AGENTS.md", "Prices are in cents.")
    async with serving(HELLO) as server:
        cli.use(server).env |= TRUST
        await cli.ask("hi", "--model", model)
        system = system_of(server.requests[0])
    assert "Prices are in cents." in system
    texts = [
        "do not offer to do what was asked",
        "no summaries, notes or example scripts",
        "never print code for the user to copy",
    ]
    assert [text for text in texts if text in system] == ([says] if says else [])
