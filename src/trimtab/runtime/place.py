"""Where an agent works: its session, its folder on disk, its workspace."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.customization import Skill
from trimtab.contracts.run import Mode
from trimtab.runtime.customizations import Customizations
from trimtab.runtime.rule_files import FileRules
from trimtab.runtime.surroundings import Surroundings
from trimtab.runtime.toolset import Situation
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Session
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from trimtab.hooks.caller import HookCaller
    from trimtab.runtime.folder_trust import FolderTrust
    from trimtab.workspace.sandbox.policy import SandboxPolicy


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent works: its session, its folder on disk, its workspace."""

    session: Session
    folder: SessionFolder
    workspace: LocalWorkspace
    surroundings: Surroundings
    home: Home | None = None
    customizations: Customizations | None = None
    resumed: bool = False
    trust: "FolderTrust | None" = None
    rules: FileRules = FileRules()
    hooks: "HookCaller | None" = None
    sandbox: "SandboxPolicy | None" = None
    env: Mapping[str, str] = {}

    @property
    def skills(self) -> dict[str, Skill]:
        """Skills the model may load."""
        return self.customizations.offered_skills if self.customizations else {}

    def has_read_only_agent(self) -> bool:
        """Whether the main agent, which a person may change, is one that is kept from changes."""
        agent = self.customizations.agent if self.customizations else None
        return agent is not None and agent.read_only

    def situation(self, mode: Mode, model: str) -> Situation:
        """What decides which tools there are here."""
        if self.customizations is None:
            return Situation(mode=mode, model=model, env=self.env, home=self.home)
        return find_situation(self.customizations, self.home, mode, model)


def find_situation(custom: Customizations, home: Home | None, mode: Mode, model: str) -> Situation:
    """What decides which tools a session has that these customizations belong to."""
    now = Situation(
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
        from trimtab.runtime.crew import read_settings

        disabled = read_settings(custom).disabled_subagents
        offered = {name: about for name, about in now.agents.items() if name not in disabled}
        no_agents = (*now.no_agents, *disabled)
        now = msgspec.structs.replace(now, agents=offered, no_agents=no_agents)
    if not custom.settings.get("memory", bool, False):
        return now
    from trimtab.tools.memories import Memories

    folder = os.path.join(home.state, "memories")
    return msgspec.structs.replace(now, memory=Memories(folder, custom.around.git_root or ""))
