"""Describes loaded skills, agents and problems, in events and for the SDK."""

from collections.abc import Iterable

from trimtab.contracts.customization import AgentDefinition, Problem, Skill
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.setup import (
    SessionCustomAgentsUpdated,
    SessionMcpServersLoaded,
    SessionSkillsLoaded,
)
from trimtab.contracts.text import count
from trimtab.customize.customizations import Customizations


def describe_skill(skill: Skill) -> dict[str, object]:
    """Return a skill in the form of `session.skills_loaded` and of the SDK."""
    described: dict[str, object] = {
        "name": skill.name,
        "description": skill.description,
        "source": skill.origin,
        "userInvocable": skill.user_invocable,
        "enabled": skill.enabled,
        "path": skill.path,
    }
    if skill.argument_hint:
        described["argumentHint"] = skill.argument_hint
    return described


def describe_agent(agent: AgentDefinition) -> dict[str, object]:
    """Return an agent in the form of `session.custom_agents_updated` and of the SDK."""
    described: dict[str, object] = {
        "id": agent.name,
        "name": agent.alias or agent.name,
        "displayName": agent.display_name,
        "description": agent.description,
        "source": agent.origin,
        "tools": None if agent.tools is None else list(agent.tools),
        "userInvocable": agent.user_invocable,
        "disableModelInvocation": not agent.model_invocable,
    }
    if agent.models:
        described |= {"model": agent.models[0], "models": list(agent.models)}
        described["modelPolicy"] = agent.model_policy
    return described


def describe_loaded(custom: Customizations, servers: list[dict[str, object]]) -> list[EventData]:
    """Return events about the loaded servers, skills, agents and new problems."""
    skills = [describe_skill(skill) for skill in custom.skills.skills.values()]
    events: list[EventData] = [
        SessionMcpServersLoaded(servers=servers),
        SessionSkillsLoaded(skills=skills),
    ]
    if custom.agent is not None or custom.has_agent_files():
        problems = custom.agents.problems
        events.append(
            SessionCustomAgentsUpdated(
                agents=[describe_agent(agent) for agent in custom.agents.agents.values()],
                warnings=[problem.sentence for problem in problems if problem.note],
                errors=[problem.sentence for problem in problems if not problem.note],
            )
        )
    if warning := _warn(custom, _problems(custom)):
        events.append(warning)
    return events


def _problems(custom: Customizations) -> Iterable[Problem]:
    yield from (*custom.settings.problems, *custom.skills.problems, *custom.model_problems)
    if custom.all_plugins:
        from trimtab.customize.plugins import trust_unseen

        trust_unseen(custom.places.home, custom.all_plugins)
        yield from (problem for plugin in custom.all_plugins for problem in plugin.problems)
    if custom.loads_instructions:
        yield from custom.instructions.problems
    if custom.is_loaded("servers"):
        yield from custom.servers.problems


def _warn(custom: Customizations, problems: Iterable[Problem]) -> SessionWarning | None:
    sentences = [problem.sentence for problem in problems if not problem.note]
    new = [sentence for sentence in sentences if sentence not in custom.warned]
    if not new:
        return None
    custom.warned.update(new)
    more = f" (and {count(len(new) - 1, 'more problem')})" if len(new) > 1 else ""
    message = f"{new[0]}{more}; see `trimtab customizations`."
    return SessionWarning(warning_type="customization", message=message)
