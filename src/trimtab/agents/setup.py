"""The parts of a session that its agents are built from."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.toolset import ToolConditions
from trimtab.config.paths import Home
from trimtab.contracts.run import Mode
from trimtab.customize.context import SessionContext
from trimtab.customize.customizations import Customizations

if TYPE_CHECKING:
    from trimtab.hooks.caller import HookCaller


class SessionSetup(SessionContext, frozen=True, kw_only=True):
    """The context of a session and its hooks."""

    hooks: "HookCaller | None" = None

    def has_read_only_agent(self) -> bool:
        """Return True if the main agent is at present a custom agent that may only read."""
        agent = self.customizations.agent if self.customizations else None
        return agent is not None and agent.read_only

    def tool_conditions(self, mode: Mode, model: str) -> ToolConditions:
        """Return the conditions that decide which tools the session has."""
        if self.customizations is None:
            return ToolConditions(mode=mode, model=model, env=self.env, home=self.home)
        return find_tool_conditions(self.customizations, self.home, mode, model)


def find_tool_conditions(
    custom: Customizations, home: Home | None, mode: Mode, model: str
) -> ToolConditions:
    """Return the conditions that decide which tools a session with these customizations has."""
    conditions = ToolConditions(
        mode=mode,
        model=model,
        skills=custom.offered_skills,
        features=custom.features,
        refused=custom.refused_features,
        suffixes=custom.suffixes,
        env=custom.env,
        home=home,
        agents=custom.offered_agents,
        excluded_agents=custom.excluded_agents,
    )
    if home is None or not custom.has_settings:
        return conditions
    if "subagents" in custom.settings.values:
        from trimtab.customize.subagent_settings import read_settings

        disabled = read_settings(custom).disabled_subagents
        offered = {
            name: description
            for name, description in conditions.agents.items()
            if name not in disabled
        }
        excluded = (*conditions.excluded_agents, *disabled)
        conditions = msgspec.structs.replace(conditions, agents=offered, excluded_agents=excluded)
    if not custom.settings.get("memory", bool, False):
        return conditions
    from trimtab.tools.memories import Memories

    folder = os.path.join(home.state, "memories")
    memory = Memories(folder, custom.checkout.git_root or "")
    return msgspec.structs.replace(conditions, memory=memory)
