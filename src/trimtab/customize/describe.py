"""Skills and agents as events and the SDK describe them."""

from trimtab.contracts.customization import AgentDefinition, Skill


def describe_skill(skill: Skill) -> dict[str, object]:
    """A skill as `session.skills_loaded` and the SDK describe it."""
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
    """An agent as `session.custom_agents_updated` and the SDK describe it."""
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
