"""The system prompt of a session: ours, changed by what its caller asked for."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from trimtab.checkout.checkout import Checkout, list_entries, system_name
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.options import SessionOptions, Transform
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.run import Mode, Run
from trimtab.contracts.tool import Tool
from trimtab.customize.customizations import Customizations
from trimtab.prompts.assemble import Assembled, PromptFacts, assemble
from trimtab.prompts.customize import change_sections, join
from trimtab.providers.windows import DEFAULT
from trimtab.version import __version__


class PromptCase(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a system prompt is: a model with its tools, at a place."""

    model: str
    tools: frozenset[str]
    mode: Mode
    limit: int
    checkout: Checkout
    customizations: Customizations | None
    servers: str = ""
    """What the MCP servers whose tools there are say about them."""

    @classmethod
    def of(cls, run: Run, around: Checkout, custom: Customizations | None) -> "PromptCase":
        return cls(
            model=run.agent.model.name,
            tools=frozenset(run.agent.tools),
            mode=run.agent.mode,
            limit=run.agent.model.prompt_limit or 0,
            checkout=around,
            customizations=custom,
            servers=collect_instructions(run.agent.tools.values()),
        )


def collect_instructions(tools: Iterable[Tool]) -> str:
    """The instructions of the servers that tools are from, each server's once and in its bounds."""
    said = {
        origin.server.replace('"', "'"): re.sub(
            "<(/?(?:mcp_)?server)", r"< \1", origin.instructions
        )
        for tool in tools
        if (origin := origin_of(tool)) is not None and origin.instructions
    }
    return "\n".join(f'<server name="{name}">\n{text}\n</server>' for name, text in said.items())


class SystemPrompt(msgspec.Struct, frozen=True):
    """A whole system prompt, its parts by the names callers know, and what had no room."""

    text: str
    parts: dict[str, str]
    left_out: tuple[str, ...] = ()


async def build_prompt(
    case: PromptCase, options: SessionOptions, transform: Transform | None = None
) -> SystemPrompt:
    """The system prompt as things are now."""
    wanted = options.system_message
    if wanted.mode == "replace":
        return SystemPrompt(wanted.content, {"replaced": wanted.content})
    facts = gather_facts(case)
    assembled = assemble(facts)
    left_out = (*assembled.left_out, *_name_cut(facts.instructions))
    sections = _by_name(assembled)
    if wanted.mode == "customize":
        sections = change_sections(sections, wanted.sections)
        callbacks = [
            name for name, change in wanted.sections.items() if change.action == "transform"
        ]
        if callbacks and transform is not None:
            changed = await transform({name: sections.get(name, "") for name in callbacks})
            sections = change_sections({**sections, **changed}, {})
    added = {"appended": wanted.content} if wanted.content else {}
    return SystemPrompt(join(sections, wanted.content), {**sections, **added}, left_out)


def _name_cut(instructions: tuple[str, ...]) -> tuple[str, ...]:
    if not instructions:
        return ()
    from trimtab.prompts.instructions import CUT

    return ("part of custom_instructions",) if any(CUT in one for one in instructions) else ()


AGENT_SECTIONS = frozenset(
    (
        *("agent", "environment_context", "safety", "tool_instructions", "skills"),
        *("mcp_servers", "custom_instructions"),
    )
)
"""What an agent with a task of its own kind is told; one for every kind of task is told all."""


def build_agent_prompt(case: PromptCase, agent: AgentDefinition) -> str:
    """The system prompt of an agent that works for another one."""
    from trimtab.customize.agents import GENERAL, fill_prompt

    general = agent.name == GENERAL and agent.source == "builtin"
    facts = msgspec.structs.replace(gather_facts(case), agent=fill_prompt(agent, case.checkout.cwd))
    if not general and not agent.include_instructions:
        facts = msgspec.structs.replace(facts, instructions=())
    sections = _by_name(assemble(facts, () if general else AGENT_SECTIONS))
    return join(sections, "")


def gather_facts(case: PromptCase) -> PromptFacts:
    """What sections may speak of."""
    around, custom = case.checkout, case.customizations
    return PromptFacts(
        version=__version__,
        cwd=around.cwd,
        system=system_name(),
        listing=list_entries(around.cwd),
        tools=case.tools,
        mode=case.mode,
        model=case.model,
        limit=case.limit,
        windows=os.name == "nt",
        features=custom.features if custom else frozenset(),
        git_root=around.git_root,
        branch=around.branch,
        instructions=custom.prompt_instructions(case.limit or DEFAULT) if custom else (),
        skills=custom.prompt_skills(case.limit) if custom and "skill" in case.tools else "",
        servers=case.servers,
        agent=custom.agent_prompt() if custom else "",
    )


def _by_name(assembled: Assembled) -> dict[str, str]:
    sections: dict[str, str] = {}
    for one in assembled.sections:
        before = sections.get(one.name)
        sections[one.name] = one.text if before is None else f"{before}\n\n{one.text}"
    return sections


class Part(msgspec.Struct, frozen=True):
    """A part of a prompt and its tokens."""

    name: str
    tokens: int


def measure_parts(
    model: str,
    system: Mapping[str, str],
    tools: Sequence[ToolSpec] = (),
    rest: Mapping[str, str] = {},
) -> list[Part]:
    """The tokens of each section, of each tool's definition, and of other texts."""
    from trimtab.providers.tokens import counter_for

    counter = counter_for(model)
    none = counter.of_tools([])
    return [
        *(Part(f"system: {name}", counter.text(text)) for name, text in system.items()),
        *(Part(f"tool: {tool.name}", counter.of_tools([tool]) - none) for tool in tools),
        *(Part(name, counter.text(text)) for name, text in rest.items()),
    ]
