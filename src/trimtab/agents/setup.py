"""A session as its agents are built from it."""

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
    """A session that is set up: its context, and the hooks that are called in it."""

    hooks: "HookCaller | None" = None

    def has_read_only_agent(self) -> bool:
        """Whether the main agent, which a person may change, is one that is kept from changes."""
        agent = self.customizations.agent if self.customizations else None
        return agent is not None and agent.read_only

    def tool_conditions(self, mode: Mode, model: str) -> ToolConditions:
        """What decides which tools there are here."""
        if self.customizations is None:
            return ToolConditions(mode=mode, model=model, env=self.env, home=self.home)
        return find_tool_conditions(self.customizations, self.home, mode, model)


def find_tool_conditions(
    custom: Customizations, home: Home | None, mode: Mode, model: str
) -> ToolConditions:
    """Return the conditions that decide which tools a session with these customizations has."""
    now = ToolConditions(
        mode=mode,
        model=model,
        skills=custom.offered_skills,
        features=custom.features,
        env=custom.env,
        home=home,
        agents=custom.offered_agents,
        no_agents=custom.excluded_agents,
    )
    if home is None or not custom.has_settings:
        return now
    if "subagents" in custom.settings.values:
        from trimtab.customize.subagent_settings import read_settings

        disabled = read_settings(custom).disabled_subagents
        offered = {name: about for name, about in now.agents.items() if name not in disabled}
        no_agents = (*now.no_agents, *disabled)
        now = msgspec.structs.replace(now, agents=offered, no_agents=no_agents)
    if not custom.settings.get("memory", bool, False):
        return now
    from trimtab.tools.memories import Memories

    folder = os.path.join(home.state, "memories")
    return msgspec.structs.replace(now, memory=Memories(folder, custom.checkout.git_root or ""))
