"""Chooses the tools of a session: built-in, MCP and client tools, filtered by the options."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.customization import Skill
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.run import Mode
from trimtab.contracts.tool import Tool
from trimtab.models.choose import is_offline
from trimtab.tools.catalog import NAMES, BuiltinTool, builtin_tools, read_specs

if TYPE_CHECKING:
    from trimtab.config.paths import Home
    from trimtab.contracts.language import LanguagePort
    from trimtab.contracts.web import Page, SearchService
    from trimtab.tools.memories import Memories

NEEDS_CLIENT = frozenset(("ask_user", "exit_plan_mode"))
ON_REQUEST = frozenset(("session_store_sql", "fetch_copilot_cli_documentation"))
"""Tools that clients with `always_ask` get only if they name them."""
NEEDS_MEMORY = frozenset(("store_memory", "read_memories"))
FAMILIES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("gpt-5", {"create": "apply_patch", "edit": "apply_patch", "grep": "rg"}),
)
"""Prefixes of models trained with other tools, and the tools that replace ours for them."""
FEATURES = {"report_intent": "REPORT_INTENT"}
"""Tools behind a feature flag."""


WHERE_USEFUL = frozenset(("lsp", "notebook", "web_search"))
"""Tools that only some sessions get: those with files, a server or a service for them."""


class ToolConditions(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions that decide which tools a session has, apart from its options.

    `offered` names the built-in tools that need a client and have one.
    """

    mode: Mode
    model: str
    external: Sequence[Tool] = ()
    served: Sequence[Tool] = ()
    """The tools of MCP servers."""
    offered: Collection[str] = ()
    skills: Mapping[str, Skill] = {}
    features: Collection[str] = ()
    refused: Collection[str] = ()
    """Feature flags that somebody turned off."""
    suffixes: Collection[str] = ()
    """Suffixes of files in the working directory."""
    web_search: "SearchService | None" = None
    """The search service that the person configured."""
    has_language_servers: bool = False
    language: "LanguagePort | None" = None
    """The language servers of the session, if it is open."""
    env: Mapping[str, str] = {}
    agents: Mapping[str, str] = {}
    """The descriptions of custom agents that may be started as sub-agents, by name."""
    excluded_agents: Sequence[str] = ()
    """Agents that may not be started."""
    home: "Home | None" = None
    """The folder with past sessions, if they are kept."""
    memory: "Memories | None" = None
    """The store of facts, if the setting `memory` is on."""


def choose_tools(options: SessionOptions, client: Client, now: ToolConditions) -> dict[str, Tool]:
    """Return the tools of a session, by name."""
    tools = builtin_tools(choose_names(options, client, now))
    if "ask_user" in now.offered and client.ask_person is not None:
        from trimtab.tools.ask_user.tool import AskUser

        tools["ask_user"] = AskUser(client.ask_person)
    if "exit_plan_mode" in now.offered and client.ask_approval is not None and now.mode == "plan":
        from trimtab.tools.exit_plan_mode.tool import ExitPlanMode

        tools["exit_plan_mode"] = ExitPlanMode(client.ask_approval, find_refused_exits(now))
    if now.memory is not None:
        from trimtab.tools.read_memories.tool import ReadMemories
        from trimtab.tools.store_memory.tool import StoreMemory

        tools |= {"store_memory": StoreMemory(now.memory)}
        tools |= {"read_memories": ReadMemories(now.memory)}
    if "web_fetch" in tools:
        tools["web_fetch"] = build_web_fetch(now.env)
    if "web_search" in tools and now.web_search is not None:
        tools["web_search"] = build_web_search(now.web_search, now.env)
    if "lsp" in tools and now.language is not None:
        tools["lsp"] = build_lsp(now.language)
    if "session_store_sql" in tools and now.home is not None:
        tools["session_store_sql"] = build_session_store(now.home)
    if "task" in tools and (now.agents or now.excluded_agents):
        from trimtab.tools.task.tool import TaskTool

        tools["task"] = TaskTool(now.agents, now.excluded_agents)
    if now.skills:
        from trimtab.tools.skill.tool import SkillTool

        tools["skill"] = SkillTool(now.skills)
    ordered = {name: tools[name] for name in NAMES if name in tools}
    external = {tool.spec.name: tool for tool in (*now.served, *now.external)}
    return filter_tools(ordered, external, options)


def find_refused_exits(now: ToolConditions) -> set[str]:
    """Return the ways to leave plan mode whose feature flag is turned off."""
    refused = {"autopilot", "autopilot_fleet"} if "AUTOPILOT_MODE" in now.refused else set()
    return refused | ({"autopilot_fleet"} if "FLEET_COMMAND" in now.refused else set())


def choose_names(options: SessionOptions, client: Client, now: ToolConditions) -> set[str]:
    """Return the names of the built-in tools that need nothing of the session."""
    excluded = set(NEEDS_CLIENT | NEEDS_MEMORY)
    excluded |= {name for name, flag in FEATURES.items() if flag not in now.features}
    if client.always_ask:
        named = options.available_tools or ()
        excluded |= {
            name for name in ON_REQUEST if name not in named and f"builtin:{name}" not in named
        }
        if options.session_store:
            excluded.discard("session_store_sql")
    if not now.skills:
        excluded.add("skill")
    if now.mode != "autopilot":
        excluded.add("task_complete")
    if is_offline(options, now.env) or "DISABLE_WEB_TOOLS" in now.features:
        excluded |= {"web_fetch", "web_search"}
    if now.web_search is None:
        excluded.add("web_search")
    if now.home is None or options.session_store is False:
        excluded.add("session_store_sql")
    if ".ipynb" not in now.suffixes and "notebook" not in (options.available_tools or ()):
        excluded.add("notebook")
    if not now.has_language_servers:
        excluded.add("lsp")
    replacements = family_tools(now.model)
    excluded |= set(replacements)
    others = {name for _, table in FAMILIES for name in table.values()}
    return set(NAMES) - excluded - (others - set(replacements.values()))


def family_tools(model: str) -> Mapping[str, str]:
    """Return the replacements of usual tools for a model: usual name → replacement."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((table for prefix, table in FAMILIES if name.startswith(prefix)), {})


def build_web_fetch(env: Mapping[str, str]) -> Tool:
    async def fetch(url: str) -> "Page":
        from trimtab.providers.pages import PageFetcher

        return await PageFetcher(env).fetch(url)

    def make() -> Tool:
        from trimtab.tools.web_fetch.tool import WebFetch

        return WebFetch(fetch)

    return BuiltinTool(read_specs()["web_fetch"], make)


def build_web_search(service: "SearchService", env: Mapping[str, str]) -> Tool:
    async def fetch(url: str) -> "Page":
        from trimtab.providers.pages import PageFetcher

        headers = {
            name: env.get(value[1:], "") if value.startswith("$") else value
            for name, value in service.headers.items()
        }
        # The person chose the address, which may be that of their own machine.
        return await PageFetcher(env, accepts=lambda _: True, headers=headers).fetch(url)

    def make() -> Tool:
        from trimtab.tools.web_search.tool import WebSearch

        return WebSearch(service.url, fetch)

    return BuiltinTool(read_specs()["web_search"], make)


def build_lsp(language: "LanguagePort") -> Tool:
    def make() -> Tool:
        from trimtab.tools.lsp.tool import LspTool

        return LspTool(language)

    return BuiltinTool(read_specs()["lsp"], make)


def build_session_store(home: "Home") -> Tool:
    async def prepare() -> tuple[str, int]:
        from trimtab.session.past_sessions import prepare_index

        return await prepare_index(home)

    def make() -> Tool:
        from trimtab.tools.session_store_sql.tool import SessionStoreSql

        return SessionStoreSql(home.session_state, prepare)

    return BuiltinTool(read_specs()["session_store_sql"], make)


def filter_tools(
    builtin: Mapping[str, Tool], external: Mapping[str, Tool], options: SessionOptions
) -> dict[str, Tool]:
    """Apply the lists of available and excluded tools; excluded wins.

    A list names tools by name or with their source: `builtin:bash`, `custom:*`, `mcp:SERVER`.
    """

    def matches(tool: Tool, patterns: Collection[str]) -> bool:
        name = tool.spec.name
        source = "custom" if name in external else "builtin"
        source = "mcp" if origin_of(tool) else source
        qualified = ("*", f"{source}:{name}", f"{source}:*")
        return is_named(tool, patterns) or any(pattern in patterns for pattern in qualified)

    available = options.available_tools
    return {
        name: tool
        for name, tool in {**builtin, **external}.items()
        if (available is None or matches(tool, available))
        and not matches(tool, options.excluded_tools)
        and not matches(tool, options.main_excluded)
        and (options.tool_filter is None or options.tool_filter(name))
    }


def is_named(tool: Tool, names: Collection[str]) -> bool:
    """Return True if a list contains a tool's name, or another name of an MCP tool."""
    origin = origin_of(tool)
    return tool.spec.name in names or (
        origin is not None and any(name in names for name in origin.names)
    )
