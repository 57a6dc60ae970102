"""The parts of a session that its agents are built from."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.toolset import ToolConditions
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.run import Mode
from trimtab.customize.context import SessionContext
from trimtab.customize.customizations import Customizations

if TYPE_CHECKING:
    from trimtab.contracts.web import SearchService
    from trimtab.hooks.caller import HookCaller
    from trimtab.lsp.languages import SessionLanguages


class SessionSetup(SessionContext, frozen=True, kw_only=True):
    """The context of a session and its hooks."""

    hooks: "HookCaller | None" = None
    languages: "SessionLanguages | None" = None
    """The language servers of the session, if there are any for its files."""

    def has_read_only_agent(self) -> bool:
        """Return True if the main agent is at present a custom agent that may only read."""
        agent = self.customizations.agent if self.customizations else None
        return agent is not None and agent.read_only

    def tool_conditions(self, mode: Mode, model: str) -> ToolConditions:
        """Return the conditions that decide which tools the session has."""
        if self.customizations is None:
            return ToolConditions(mode=mode, model=model, env=self.env, home=self.home)
        conditions = find_tool_conditions(self.customizations, self.home, mode, model)
        if self.languages is None:
            return msgspec.structs.replace(conditions, has_language_servers=False)
        return msgspec.structs.replace(conditions, language=self.languages)

    async def aclose(self) -> None:
        """Stop the programs of the session."""
        if self.languages is not None:
            await self.languages.aclose()
        await self.workspace.aclose()


def set_up_languages(setup: SessionSetup) -> SessionSetup:
    """Return the set-up with the language servers for the files of a trusted folder, if any."""
    custom = setup.customizations
    if custom is None or not custom.trusted or not custom.language_servers.servers:
        return setup
    from trimtab.lsp.languages import SessionLanguages
    from trimtab.workspace.piped_program import PipedProgram

    workspace = setup.workspace
    languages = SessionLanguages(
        custom.language_servers.servers,
        workspace.root,
        PipedProgram,
        workspace.child_env,
        setup.session.emit,
    )
    return msgspec.structs.replace(setup, languages=languages)


def read_search_service(value: object) -> "SearchService":
    """Return the setting `webSearch`. Raises `ConfigurationError`."""
    from trimtab.contracts.web import SearchService

    try:
        service = msgspec.convert(value, SearchService)
    except msgspec.ValidationError as error:
        from trimtab.config.invalid_settings import refuse

        raise refuse("webSearch", SearchService, error) from None
    if "{query}" not in service.url or not service.url.startswith(("http://", "https://")):
        raise ConfigurationError(
            "The setting `webSearch` is invalid: url must be an address with {query}; correct it."
        )
    return service


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
        has_language_servers=custom.trusted and bool(custom.language_servers.servers),
        env=custom.env,
        home=home,
        agents=custom.offered_agents,
        excluded_agents=custom.excluded_agents,
    )
    if home is None or not custom.has_settings:
        return conditions
    if "webSearch" in custom.settings.values:
        service = read_search_service(custom.settings.values["webSearch"])
        conditions = msgspec.structs.replace(conditions, web_search=service)
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
