"""What a session tells about what it loaded from disk: servers, skills, agents and problems."""

from collections.abc import Iterable

from trimtab.contracts.customization import Problem
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.setup import (
    SessionCustomAgentsUpdated,
    SessionMcpServersLoaded,
    SessionSkillsLoaded,
)
from trimtab.contracts.text import count
from trimtab.customize.customizations import Customizations
from trimtab.customize.describe import describe_agent, describe_skill


def describe_loaded(custom: Customizations, servers: list[dict[str, object]]) -> list[EventData]:
    """What the session has, in events; problems are told once."""
    skills = [describe_skill(one) for one in custom.skills.skills.values()]
    events: list[EventData] = [
        SessionMcpServersLoaded(servers=servers),
        SessionSkillsLoaded(skills=skills),
    ]
    if custom.agent is not None or custom.has_agent_files():
        events.append(
            SessionCustomAgentsUpdated(
                agents=[describe_agent(one) for one in custom.agents.agents.values()],
                warnings=[one.sentence for one in custom.agents.problems if one.note],
                errors=[one.sentence for one in custom.agents.problems if not one.note],
            )
        )
    if warning := _warn(custom, _problems(custom)):
        events.append(warning)
    return events


def _problems(custom: Customizations) -> Iterable[Problem]:
    yield from (*custom.settings.problems, *custom.skills.problems, *custom.model_problems)
    if custom.all_plugins:
        from trimtab.customize.plugins import trust_first

        trust_first(custom.places.home, custom.all_plugins)
        yield from (one for plugin in custom.all_plugins for one in plugin.problems)
    if custom.loads_instructions:
        yield from custom.instructions.problems
    if "servers" in custom.__dict__:
        yield from custom.servers.problems


def _warn(custom: Customizations, problems: Iterable[Problem]) -> SessionWarning | None:
    new = [one.sentence for one in problems if not one.note]
    new = [one for one in new if one not in custom.warned]
    if not new:
        return None
    custom.warned.update(new)
    more = f" (and {count(len(new) - 1, 'more problem')})" if len(new) > 1 else ""
    message = f"{new[0]}{more}; see `trimtab customizations`."
    return SessionWarning(warning_type="customization", message=message)
