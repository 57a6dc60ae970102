"""Which tools a session has: built-in ones, those of clients, and what the lists leave of them."""

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
    from trimtab.contracts.web import Page
    from trimtab.tools.memories import Memories

NEEDS_CLIENT = frozenset(("ask_user", "exit_plan_mode"))
ON_REQUEST = frozenset(("session_store_sql", "fetch_copilot_cli_documentation"))
"""Tools that a program which judges calls itself gets only when it names them."""
NEEDS_MEMORY = frozenset(("store_memory", "read_memories"))
FAMILIES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("gpt-5", {"create": "apply_patch", "edit": "apply_patch", "grep": "rg"}),
)
"""How names of models begin that were trained with other tools, and which those have instead."""
FEATURES = {"report_intent": "REPORT_INTENT"}
"""Tools that are there only when a feature flag is on."""


class ToolConditions(msgspec.Struct, frozen=True, kw_only=True):
    """What may change about a session's tools. `offered` names those that have a client now."""

    mode: Mode
    model: str
    external: Sequence[Tool] = ()
    served: Sequence[Tool] = ()
    """The tools of MCP servers."""
    offered: Collection[str] = ()
    skills: Mapping[str, Skill] = {}
    features: Collection[str] = ()
    env: Mapping[str, str] = {}
    agents: Mapping[str, str] = {}
    """Agents people wrote that may work for this one, by name, each with what it is for."""
    no_agents: Sequence[str] = ()
    """Names of agents that may not."""
    home: "Home | None" = None
    """Where past sessions are, if they are kept."""
    memory: "Memories | None" = None
    """Where facts are kept, if the person wants that."""


def choose_tools(options: SessionOptions, client: Client, now: ToolConditions) -> dict[str, Tool]:
    """The tools of a session."""
    tools = builtin_tools(choose_names(options, client, now))
    if "ask_user" in now.offered and client.ask_person is not None:
        from trimtab.tools.ask_user.tool import AskUser

        tools["ask_user"] = AskUser(client.ask_person)
    if "exit_plan_mode" in now.offered and client.ask_approval is not None and now.mode == "plan":
        from trimtab.tools.exit_plan_mode.tool import ExitPlanMode

        tools["exit_plan_mode"] = ExitPlanMode(client.ask_approval)
    if now.memory is not None:
        from trimtab.tools.read_memories.tool import ReadMemories
        from trimtab.tools.store_memory.tool import StoreMemory

        tools |= {"store_memory": StoreMemory(now.memory)}
        tools |= {"read_memories": ReadMemories(now.memory)}
    if "web_fetch" in tools:
        tools["web_fetch"] = build_web_fetch(now.env)
    if "session_store_sql" in tools and now.home is not None:
        tools["session_store_sql"] = build_session_store(now.home)
    if "task" in tools and (now.agents or now.no_agents):
        from trimtab.tools.task.tool import TaskTool

        tools["task"] = TaskTool(now.agents, now.no_agents)
    if now.skills:
        from trimtab.tools.skill.tool import SkillTool

        tools["skill"] = SkillTool(now.skills)
    ordered = {name: tools[name] for name in NAMES if name in tools}
    external = {tool.spec.name: tool for tool in (*now.served, *now.external)}
    return filter_tools(ordered, external, options)


def choose_names(options: SessionOptions, client: Client, now: ToolConditions) -> set[str]:
    """Which built-in tools there are, apart from those that are made for a session."""
    left_out = set(NEEDS_CLIENT | NEEDS_MEMORY)
    left_out |= {name for name, flag in FEATURES.items() if flag not in now.features}
    if client.always_ask:
        named = options.available_tools or ()
        left_out |= {n for n in ON_REQUEST if n not in named and f"builtin:{n}" not in named}
    if not now.skills:
        left_out.add("skill")
    if now.mode != "autopilot":
        left_out.add("task_complete")
    if is_offline(options, now.env) or "DISABLE_WEB_TOOLS" in now.features:
        left_out.add("web_fetch")
    if now.home is None:
        left_out.add("session_store_sql")
    instead = family_tools(now.model)
    left_out |= set(instead)
    others = {name for _, table in FAMILIES for name in table.values()}
    return set(NAMES) - left_out - (others - set(instead.values()))


def family_tools(model: str) -> Mapping[str, str]:
    """The tools a model has instead of the usual ones: usual name → its own."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((table for start, table in FAMILIES if name.startswith(start)), {})


def build_web_fetch(env: Mapping[str, str]) -> Tool:
    async def fetch(url: str) -> "Page":
        from trimtab.providers.pages import PageFetcher

        return await PageFetcher(env).fetch(url)

    def make() -> Tool:
        from trimtab.tools.web_fetch.tool import WebFetch

        return WebFetch(fetch)

    return BuiltinTool(read_specs()["web_fetch"], make)


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
    """What is left when the lists of available and excluded tools have been applied.

    A list names tools plainly or by where they come from: `builtin:bash`, `custom:*`, `mcp:SERVER`.
    Excluded beats available.
    """

    def matches(tool: Tool, patterns: Collection[str]) -> bool:
        name = tool.spec.name
        source = "custom" if name in external else "builtin"
        source = "mcp" if origin_of(tool) else source
        wanted = ("*", f"{source}:{name}", f"{source}:*")
        return is_named(tool, patterns) or any(one in patterns for one in wanted)

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
    """Whether a list has a tool: by its name, or the names those of MCP servers have elsewhere."""
    origin = origin_of(tool)
    return tool.spec.name in names or (
        origin is not None and any(one in names for one in origin.names)
    )
