"""Customizations over the official SDK: agents it brings or finds, skills, instructions."""

from typing import Any

import pytest
from copilot.generated import rpc

from customizekit import write
from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
AGENTS: Any = [
    {"name": "tester", "display_name": "Tester", "prompt": "Only test.", "tools": ["view"]},
    {"name": "other", "prompt": "Be other.", "model": "other-model"},
]


@pytest.mark.proves("AGENT-10")
async def test_a_chosen_agent_works_until_it_is_chosen_no_more(sdk: Sdk) -> None:
    async with talking(sdk, [DONE] * 4, custom_agents=AGENTS) as talk:
        await talk.say("one")
        await talk.session.rpc.agent.select(rpc.AgentSelectRequest(name="tester"))
        await talk.say("two")
        await talk.session.rpc.agent.select(rpc.AgentSelectRequest(name="other"))
        await talk.say("three")
        await talk.session.rpc.agent.deselect()
        await talk.say("four")
        models = [request.json["model"] for request in talk.server.requests]
        assert models == ["scripted", "scripted", "other-model", "scripted"]
        assert ["Only test." in talk.system(n) for n in range(4)] == [False, True, False, False]
        assert "Be other." in talk.system(2)
        assert talk.tool_names(1) == ["view"]
        assert len(talk.tool_names(0)) == len(talk.tool_names(2)) == len(talk.tool_names(3)) > 5


async def test_a_session_can_begin_as_an_agent(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], custom_agents=AGENTS, agent="tester") as talk:
        await talk.say("hi")
        assert "Only test." in talk.system()
        current = await talk.session.rpc.agent.get_current()
        assert current.agent is not None
        assert current.agent.name == "tester"


@pytest.mark.proves("INST-09", "INST-10")
async def test_instructions_of_an_organization_come_last(sdk: Sdk) -> None:
    write(sdk.cwd / "AGENTS.md", "From the repository.")
    options = {"organization_custom_instructions": "From the organization."}
    async with talking(sdk, [DONE], **options) as talk:
        await talk.say("hi")
        system = talk.system()
        sources = (await talk.session.rpc.instructions.get_sources()).sources
    assert 0 < system.index("From the repository.") < system.index("From the organization.")
    assert [(one.label, one.content) for one in sources] == [("AGENTS.md", "From the repository.")]


async def test_a_client_can_leave_instructions_out(sdk: Sdk) -> None:
    write(sdk.cwd / "AGENTS.md", "From the repository.")
    async with talking(sdk, [DONE], skip_custom_instructions=True) as talk:
        await talk.say("hi")
        assert "From the repository." not in talk.system()


async def test_a_model_uses_a_skill_of_the_clients_directory(sdk: Sdk) -> None:
    write(sdk.home / "own/sums/SKILL.md", "---\ndescription: Adds up\n---\nAdd carefully.\n")
    folders = [str(sdk.home / "own")]
    async with talking(sdk, [use("skill", skill="sums"), DONE], skill_directories=folders) as talk:
        await talk.say("add")
        assert "- sums: Adds up" in talk.system(0)
        assert "Add carefully." in talk.prompt(1)
        assert [
            one.data.name for one in talk.heard.events if one.type.value == "skill.invoked"
        ] == ["sums"]


@pytest.mark.proves("VSC-04")
async def test_what_is_on_disk_can_be_listed_without_a_session(sdk: Sdk) -> None:
    write(sdk.cwd / "AGENTS.md", "Text.")
    write(sdk.cwd / ".github/skills/s/SKILL.md", "---\ndescription: d\n---\nx\n")
    write(sdk.cwd / ".github/agents/a.md", "---\ndescription: d\n---\nx\n")
    write(sdk.home / "skills/mine/SKILL.md", "x")
    async with sdk.client() as client:
        request = client._client.request
        where = {"projectPaths": [str(sdk.cwd)]}
        skills = (await request("skills.discover", where))["skills"]
        agents = (await request("agents.discover", where))["agents"]
        sources = (await request("instructions.discover", where))["sources"]
        alone = (await request("skills.discover", {}))["skills"]
        paths = (await request("skills.getDiscoveryPaths", where))["paths"]
        files = (await request("instructions.getDiscoveryPaths", where))["paths"]
        folders = (await request("agents.getDiscoveryPaths", where))["paths"]
    assert [rpc.ServerSkill.from_dict(one).name for one in skills] == ["s", "mine"]
    assert [rpc.AgentInfo.from_dict(one).id for one in agents] == ["a"]
    assert [rpc.InstructionSource.from_dict(one).content for one in sources] == ["Text."]
    assert [one["name"] for one in alone] == ["mine"]
    assert rpc.SkillDiscoveryPath.from_dict(paths[0]).preferred_for_creation
    for one in files:
        rpc.InstructionDiscoveryPath.from_dict(one)
    assert {rpc.AgentDiscoveryPath.from_dict(one).scope.value for one in folders} == {
        "project",
        "user",
    }
