"""Builds the system prompt of a session: our sections, changed as the client asked."""

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
    """The conditions of a system prompt: the model, its tools, the mode and the checkout."""

    model: str
    tools: frozenset[str]
    mode: Mode
    limit: int
    checkout: Checkout
    customizations: Customizations | None
    servers: str = ""
    """The instructions of the MCP servers that some of the tools belong to."""

    @classmethod
    def of(cls, run: Run, checkout: Checkout, custom: Customizations | None) -> "PromptCase":
        return cls(
            model=run.agent.model.name,
            tools=frozenset(run.agent.tools),
            mode=run.agent.mode,
            limit=run.agent.model.prompt_limit or 0,
            checkout=checkout,
            customizations=custom,
            servers=collect_instructions(run.agent.tools.values()),
        )


def collect_instructions(tools: Iterable[Tool]) -> str:
    """Return the instructions of the MCP servers of some tools, each in a `<server>` element.

    Tags in the instructions are broken up, so that a server cannot close its element.
    """
    instructions = {
        origin.server.replace('"', "'"): re.sub(
            "<(/?(?:mcp_)?server)", r"< \1", origin.instructions
        )
        for tool in tools
        if (origin := origin_of(tool)) is not None and origin.instructions
    }
    return "\n".join(
        f'<server name="{name}">\n{text}\n</server>' for name, text in instructions.items()
    )


class SystemPrompt(msgspec.Struct, frozen=True):
    """A system prompt, its sections by name, and the names of those that did not fit."""

    text: str
    parts: dict[str, str]
    left_out: tuple[str, ...] = ()


async def build_prompt(
    case: PromptCase, options: SessionOptions, transform: Transform | None = None
) -> SystemPrompt:
    """Build the system prompt of a main agent."""
    message = options.system_message
    if message.mode == "replace":
        return SystemPrompt(message.content, {"replaced": message.content})
    facts = gather_facts(case)
    assembled = assemble(facts)
    left_out = (*assembled.left_out, *_name_shortened(facts.instructions))
    sections = _by_name(assembled)
    if message.mode == "customize":
        sections = change_sections(sections, message.sections)
        callbacks = [
            name for name, change in message.sections.items() if change.action == "transform"
        ]
        if callbacks and transform is not None:
            changed = await transform({name: sections.get(name, "") for name in callbacks})
            sections = change_sections({**sections, **changed}, {})
    added = {"appended": message.content} if message.content else {}
    return SystemPrompt(join(sections, message.content), {**sections, **added}, left_out)


def _name_shortened(instructions: tuple[str, ...]) -> tuple[str, ...]:
    if not instructions:
        return ()
    from trimtab.prompts.instructions import CUT

    return ("part of custom_instructions",) if any(CUT in text for text in instructions) else ()


AGENT_SECTIONS = frozenset(
    (
        *("agent", "environment_context", "safety", "tool_instructions", "skills"),
        *("mcp_servers", "custom_instructions"),
    )
)
"""The sections of a specialised sub-agent's prompt; the general-purpose agent gets all."""


def build_agent_prompt(case: PromptCase, agent: AgentDefinition) -> str:
    """Build the system prompt of a sub-agent."""
    from trimtab.customize.agents import GENERAL, fill_prompt

    general = agent.name == GENERAL and agent.source == "builtin"
    facts = msgspec.structs.replace(gather_facts(case), agent=fill_prompt(agent, case.checkout.cwd))
    if not general and not agent.include_instructions:
        facts = msgspec.structs.replace(facts, instructions=())
    sections = _by_name(assemble(facts, () if general else AGENT_SECTIONS))
    return join(sections, "")


def gather_facts(case: PromptCase) -> PromptFacts:
    """Collect the facts that sections of the prompt may mention."""
    checkout, custom = case.checkout, case.customizations
    return PromptFacts(
        version=__version__,
        cwd=checkout.cwd,
        system=system_name(),
        listing=list_entries(checkout.cwd),
        tools=case.tools,
        mode=case.mode,
        model=case.model,
        limit=case.limit,
        windows=os.name == "nt",
        features=custom.features if custom else frozenset(),
        git_root=checkout.git_root,
        branch=checkout.branch,
        instructions=custom.prompt_instructions(case.limit or DEFAULT) if custom else (),
        skills=custom.prompt_skills(case.limit) if custom and "skill" in case.tools else "",
        servers=case.servers,
        agent=custom.agent_prompt() if custom else "",
    )


def _by_name(assembled: Assembled) -> dict[str, str]:
    sections: dict[str, str] = {}
    for section in assembled.sections:
        before = sections.get(section.name)
        text = section.text if before is None else f"{before}\n\n{section.text}"
        sections[section.name] = text
    return sections


class Part(msgspec.Struct, frozen=True):
    """The number of tokens of a part of a request."""

    name: str
    tokens: int


def measure_parts(
    model: str,
    system: Mapping[str, str],
    tools: Sequence[ToolSpec] = (),
    rest: Mapping[str, str] = {},
) -> list[Part]:
    """Count the tokens of each section, of each tool definition, and of other texts."""
    from trimtab.providers.tokens import counter_for

    counter = counter_for(model)
    empty = counter.of_tools([])
    return [
        *(Part(f"system: {name}", counter.text(text)) for name, text in system.items()),
        *(Part(f"tool: {tool.name}", counter.of_tools([tool]) - empty) for tool in tools),
        *(Part(name, counter.text(text)) for name, text in rest.items()),
    ]
