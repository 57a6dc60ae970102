"""Skills, commands and agents in runs of the real program."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from customizekit import write
from livekit import opened

HELLO = [{"text": "Hello."}]
TRUST = {"COPILOT_ALLOW_ALL": "true"}


def skill(description: str, body: str = "Do it.", **fields: str) -> str:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\n".join(["---", f"description: {description}", *lines, "---", body, ""])


def log_of(cli: Cli) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli.logs()[0].read_bytes().splitlines()]


@pytest.mark.proves("SKILL-01", "SKILL-02", "SKILL-03", "SKILL-06", "SKILL-14")
async def test_skills_of_every_folder_are_loaded_and_listed(cli: Cli, tmp_path: Path) -> None:
    write(cli.cwd / ".github" / "skills" / "one" / "SKILL.md", skill("first"))
    write(cli.cwd / ".agents" / "skills" / "two" / "SKILL.md", skill("second"))
    write(cli.cwd / ".claude" / "skills" / "three" / "SKILL.md", skill("third"))
    write(cli.home / "skills" / "four" / "SKILL.md", skill("fourth"))
    write(tmp_path / ".claude" / "skills" / "five" / "SKILL.md", skill("fifth"))
    write(tmp_path / ".agents" / "skills" / "six" / "SKILL.md", skill("sixth"))
    write(tmp_path / "more" / "seven" / "SKILL.md", skill("seventh"))
    write(tmp_path / "most" / "eight" / "SKILL.md", skill("eighth"))
    folders = f"{tmp_path / 'more'},{tmp_path / 'most'}"
    env = {**TRUST, "COPILOT_SKILLS_DIRS": folders}
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", env=env)
        prompt = server.requests[0].json["messages"][0]["content"]
        tools = {tool["function"]["name"] for tool in server.requests[0].json["tools"]}
    loaded = {one["name"]: one for one in outcome.of("session.skills_loaded")[-1]["skills"]}
    assert list(loaded) == ["one", "two", "three", "four", "six", "five", "seven", "eight"]
    assert loaded["one"]["source"] == "project"
    assert loaded["four"]["source"] == "personal-copilot"
    for name, description in (("one", "first"), ("seven", "seventh")):
        assert f"- {name}: {description}" in prompt
    assert "skill" in tools


async def test_an_untrusted_folder_gives_no_skills_commands_or_agents(cli: Cli) -> None:
    write(cli.cwd / ".github" / "skills" / "evil" / "SKILL.md", skill("evil"))
    write(cli.cwd / ".claude" / "commands" / "worse.md", "Do harm.")
    write(cli.cwd / ".github" / "agents" / "worst.md", "---\ndescription: x\n---\nharm\n")
    write(cli.home / "skills" / "mine" / "SKILL.md", skill("mine"))
    async with serving(HELLO) as server:
        unknown = await cli.use(server).ask("/worse now")
        outcome = await cli.run("-p", "is this worse?", "--output-format", "json")
        sent = json.dumps(server.requests[0].json)
        refused = await cli.run("-p", "hi", "--agent", "worst")
    assert [one["name"] for one in outcome.of("session.skills_loaded")[-1]["skills"]] == ["mine"]
    assert unknown.code == 2
    assert "Unknown command /worse" in unknown.result["error"]["message"]
    assert "harm" not in sent
    assert "evil" not in sent
    assert refused.code == 2
    assert "worst" in refused.notes


@pytest.mark.proves("SKILL-12")
async def test_the_model_loads_a_skill_and_its_text_follows_the_result(cli: Cli) -> None:
    text = skill("deploys", "Run make deploy.", allowed_tools="bash, view")
    path = write(cli.home / "skills" / "deploy" / "SKILL.md", text)
    call = {"name": "skill", "arguments": {"skill": "deploy"}}
    wrong = {"name": "skill", "arguments": {"skill": "nothing"}}
    async with serving([{"tools": [call, wrong]}, {"text": "Done."}]) as server:
        await cli.use(server).ask("deploy it")
        messages = server.requests[1].json["messages"]
    assert [message["role"] for message in messages[-3:]] == ["tool", "tool", "user"]
    assert messages[-3]["content"].startswith('Skill "deploy" loaded successfully.')
    assert "Skill not found: nothing. Skills you can load: deploy." in messages[-2]["content"]
    assert messages[-1]["content"] == (
        f'<skill-context name="deploy">\nBase directory for this skill: {path.parent}\n\n'
        "Run make deploy.\n</skill-context>"
    )
    invoked = next(line["data"] for line in log_of(cli) if line["type"] == "skill.invoked")
    assert invoked["name"] == "deploy"
    assert invoked["content"] == "Run make deploy."
    assert invoked["allowedTools"] == ["bash", "view"]
    assert invoked["trigger"] == "agent-invoked"
    assert invoked["disableModelInvocation"] is False
    assert "pluginName" not in invoked


@pytest.mark.proves("SKILL-09", "SKILL-10", "SKILL-11")
async def test_who_may_call_a_skill_is_decided_by_its_fields(cli: Cli) -> None:
    hidden = skill("not for models", "HIDDEN BODY $1", disable_model_invocation="true")
    write(cli.home / "skills" / "hidden" / "SKILL.md", hidden)
    write(
        cli.home / "skills" / "auto" / "SKILL.md",
        skill("not for people", "AUTO", user_invocable="false"),
    )
    call = {"name": "skill", "arguments": {"skill": "hidden"}}
    async with serving([{"tools": [call]}, {"text": "No."}, {"text": "x"}]) as server:
        await cli.use(server).ask("hi")
        first, second = (request.json["messages"] for request in server.requests[:2])
        await cli.ask("/hidden now")
        called = server.requests[2].json["messages"][-1]["content"]
        refused = await cli.ask("/auto now")
    assert "- auto: not for people" in first[0]["content"]
    assert "not for models" not in first[0]["content"]
    assert "Skill not found: hidden" in second[-1]["content"]
    assert "HIDDEN BODY now" in called
    assert refused.code == 2
    assert "Only the model can call the skill" in refused.result["error"]["message"]


@pytest.mark.proves("CMD-01", "CMD-03", "CMD-04", "SKILL-11")
async def test_a_command_is_a_prompt_with_arguments_and_a_skill_of_its_name_wins(
    cli: Cli, tmp_path: Path
) -> None:
    write(cli.cwd / ".claude" / "commands" / "fix.md", skill("fixes", "Fix issue $1 ($ARGUMENTS)."))
    write(tmp_path / ".claude" / "commands" / "both.md", "the command")
    write(cli.home / "skills" / "both" / "SKILL.md", skill("wins", "the skill"))
    async with serving([{"text": "a"}, {"text": "b"}]) as server:
        outcome = await cli.use(server).ask("/fix 12 quickly", env=TRUST)
        fixed = server.requests[0].json["messages"][-1]["content"]
        await cli.ask("/both", env=TRUST)
        both = server.requests[1].json["messages"][-1]["content"]
    assert fixed.endswith("Fix issue 12 (12 quickly).")
    assert outcome.of("user.message")[0]["content"] == "/fix 12 quickly"
    assert "the skill" in both
    assert "the command" not in both


@pytest.mark.proves("CMD-02")
async def test_commands_exist_in_the_claude_folder_only(cli: Cli) -> None:
    write(cli.cwd / ".github" / "commands" / "one.md", "BODY")
    write(cli.cwd / ".agents" / "commands" / "one.md", "BODY")
    async with serving(HELLO) as server:
        refused = await cli.use(server).ask("/one", env=TRUST)
        assert not server.requests
    assert "Unknown command /one" in refused.result["error"]["message"]


@pytest.mark.proves("SKILL-13")
async def test_a_disabled_skill_is_listed_as_such_and_cannot_be_used(cli: Cli) -> None:
    write(cli.home / "skills" / "off" / "SKILL.md", skill("is off"))
    write(cli.home / "settings.json", '{"disabledSkills": ["off"]}')
    async with serving(HELLO) as server:
        refused = await cli.use(server).ask("/off")
        outcome = await cli.ask("hello")
        sent = server.requests[0].json
    assert refused.code == 2
    assert "trimtab skills enable off" in refused.result["error"]["message"]
    assert [one["enabled"] for one in outcome.of("session.skills_loaded")[-1]["skills"]] == [False]
    assert "is off" not in sent["messages"][0]["content"]


AGENT = """---
name: reviewer
displayName: The Reviewer
description: Reviews
tools: ["Read", "grep"]
model: special-model
---
You review what is in {{cwd}}.
"""


@pytest.mark.proves("AGENT-01", "AGENT-06", "AGENT-07", "AGENT-10")
@pytest.mark.parametrize("folder", [".github", ".claude"])
@pytest.mark.parametrize("suffix", [".md", ".agent.md"])
async def test_a_named_agent_gives_the_session_its_prompt_tools_and_model(
    cli: Cli, folder: str, suffix: str
) -> None:
    write(cli.cwd / folder / "agents" / f"reviewer{suffix}", AGENT)
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", "--agent", "reviewer", env=TRUST)
        sent = server.requests[0].json
    assert outcome.code == 0, outcome.notes
    assert f"You review what is in {cli.cwd}." in sent["messages"][0]["content"]
    assert sent["model"] == "special-model"
    assert {tool["function"]["name"] for tool in sent["tools"]} == {"view", "grep"}
    updated = outcome.of("session.custom_agents_updated")[0]
    listed = {one["id"]: one for one in updated["agents"]}
    assert listed["reviewer"]["displayName"] == "The Reviewer"
    assert listed["explore"]["source"] == "builtin"


@pytest.mark.proves("AGENT-04", "AGENT-05", "AGENT-02")
async def test_agents_of_one_name_follow_the_priorities(cli: Cli, tmp_path: Path) -> None:
    def put(folder: Path, name: str, text: str) -> None:
        write(folder / "agents" / name, f"---\ndescription: d\ntools: ['*']\n---\n{text}\n")

    put(cli.cwd / ".claude", "a.agent.md", "claude wins nothing")
    put(cli.cwd / ".github", "a.md", "plain file")
    put(cli.cwd / ".github", "a.agent.md", "agent file wins")
    put(tmp_path / ".github", "mine.md", "from home")
    put(tmp_path / ".claude", "other.agent.md", "from the other home")
    async with serving([{"text": "a"}, {"text": "b"}, {"text": "c"}]) as server:
        await cli.use(server).ask("hi", "--agent", "a", env=TRUST)
        await cli.ask("hi", "--agent", "mine", env=TRUST)
        await cli.ask("hi", "--agent", "other", env=TRUST)
        first, second, third = (
            request.json["messages"][0]["content"] for request in server.requests
        )
    assert "agent file wins" in first
    assert "plain file" not in first
    assert "from home" in second
    assert "from the other home" in third


async def test_an_agent_for_other_agents_cannot_be_chosen(cli: Cli) -> None:
    text = "---\ndescription: d\ntools: ['*']\nuserInvocable: false\n---\nx\n"
    write(cli.home / "agents" / "inner.md", text)
    outcome = await cli.run("-p", "hi", "--agent", "inner")
    assert outcome.code == 2
    assert "it is for other agents only" in outcome.notes


@pytest.mark.proves("MCP-08")
async def test_configured_servers_are_listed_with_source_and_why_they_cannot_be_used(
    cli: Cli,
) -> None:
    write(cli.home / "mcp-config.json", '{"mcpServers": {"mine": {"command": "x"}}}')
    write(cli.cwd / ".mcp.json", '{"mcpServers": {"theirs": {"url": "http://127.0.0.1:9/mcp"}}}')
    flag = '{"mcpServers": {"flagged": {"command": "y"}}}'
    async with serving([{"text": "a"}, {"text": "b"}]) as server:
        trusted = await cli.use(server).ask("hi", "--additional-mcp-config", flag, env=TRUST)
        outcome = await cli.ask("hi")
    listed = {one["name"]: one for one in trusted.of("session.mcp_servers_loaded")[-1]["servers"]}
    assert {name: one["source"] for name, one in listed.items()} == {
        "mine": "user",
        "theirs": "workspace",
        "flagged": "user",
    }
    assert listed["mine"]["status"] == "failed"
    assert "x could not be started" in listed["mine"]["error"]
    names = [one["name"] for one in outcome.of("session.mcp_servers_loaded")[-1]["servers"]]
    assert names == ["mine"]


async def test_what_lies_beside_a_skill_may_be_read_and_nothing_else_there(
    cli: Cli, tmp_path: Path
) -> None:
    folder = cli.home / "skills" / "one"
    write(folder / "SKILL.md", skill("first", "See references/api.md."))
    write(folder / "references" / "api.md", "the words of the reference")
    write(cli.home / "skills" / "notes.md", "hidden words")
    (folder / "link.md").symlink_to(cli.home / "skills" / "notes.md")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("view", {"path": str(folder / "references" / "api.md")}),
        ("bash", {"command": f"cat {folder}/references/api.md", "description": "read"}),
        ("view", {"path": str(cli.home / "skills" / "notes.md")}),
        ("view", {"path": str(folder / "link.md")}),
        ("create", {"path": str(folder / "more.md"), "file_text": "x"}),
    ]
    script = [{"tools": [{"name": name, "arguments": args}]} for name, args in calls]
    async with serving([*script, {"text": "Done."}]) as server:
        outcome = await cli.use(server).run(
            "-p", "go", "--output-format=json", "--disallow-temp-dir"
        )
    ended = outcome.of("tool.execution_complete")
    assert [one["success"] for one in ended] == [True, True, False, False, False], ended
    assert "hidden words" not in outcome.out.decode()
    assert not (folder / "more.md").exists()


TOUCH = {"name": "bash", "arguments": {"command": "touch made.txt", "description": "x"}}
CREATE = {"name": "create", "arguments": {"path": "other.txt", "file_text": "x"}}
LOAD = {"name": "skill", "arguments": {"skill": "deploy"}}


def outcomes(outcome: Any) -> list[tuple[bool, str]]:
    done = outcome.of("tool.execution_complete")
    return [(data["success"], (data.get("error") or {}).get("message", "")) for data in done]


@pytest.mark.proves("SKILL-08")
@pytest.mark.parametrize(
    ("folder", "prompt", "flags", "runs"),
    [
        ("home/skills", "/deploy", (), True),
        ("home/skills", "go", (), True),
        ("project/.github/skills", "/deploy", (), True),
        ("project/.github/skills", "go", (), False),
        ("home/skills", "/deploy", ("--deny-tool", "shell(touch:*)"), False),
    ],
)
async def test_a_skill_allows_what_it_says_within_the_rules_of_the_person(
    cli: Cli, folder: str, prompt: str, flags: tuple[str, ...], runs: bool
) -> None:
    allowed = "Bash(touch:*), view"
    path = cli.home.parent / folder / "deploy/SKILL.md"
    write(path, skill("deploys", allowed_tools=allowed))
    first = [{"tools": [LOAD]}] if prompt == "go" else []
    async with serving([*first, {"tools": [TOUCH]}, {"tools": [CREATE]}, {"text": "x"}]) as server:
        outcome = await cli.use(server).run(
            "-p", prompt, "--output-format", "json", "--trust-folder", *flags
        )
    (touched, _), (created, why) = outcomes(outcome)[-2:]
    assert touched is runs
    assert (cli.cwd / "made.txt").exists() is runs
    assert not created
    assert "the skill deploy may use only" in why
    assert not (cli.cwd / "other.txt").exists()


async def test_claudes_skills_allow_and_do_not_limit(cli: Cli) -> None:
    path = cli.home.parent / ".claude/skills/deploy/SKILL.md"
    write(path, skill("deploys", allowed_tools="Bash(touch *)"))
    async with serving([{"tools": [TOUCH]}, {"tools": [CREATE]}, {"text": "x"}]) as server:
        outcome = await cli.use(server).run(
            "-p", "/deploy", "--output-format", "json", "--allow-tool", "write"
        )
    assert [success for success, _ in outcomes(outcome)] == [True, True]


async def test_a_skill_is_at_work_until_the_next_prompt(tmp_path: Path) -> None:
    write(tmp_path / "home/skills/deploy/SKILL.md", skill("deploys", allowed_tools="view"))
    replies = [{"tools": [CREATE]}, {"text": "x"}, {"tools": [CREATE]}, {"text": "x"}]
    async with opened(tmp_path, replies) as (live, watch, _):
        await live.ask("/deploy")
        await live.ask("go on")
    assert [data.success for data in watch.of("tool.execution_complete")] == [False, True]


async def test_what_a_skill_cannot_allow_is_listed(cli: Cli) -> None:
    write(cli.home / "skills/x/SKILL.md", skill("x", allowed_tools="Bash(a*b), view"))
    outcome = await cli.run("skills", "list", "--json")
    assert "allowed-tools allows nothing for Bash(a*b)" in outcome.text
