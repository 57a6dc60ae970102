"""Builds the first request a session would send, without opening a session or sending it."""

import msgspec

from trimtab.agents.setup import find_tool_conditions
from trimtab.agents.system_prompt import Part, PromptCase, SystemPrompt, build_prompt, measure_parts
from trimtab.agents.toolset import choose_tools
from trimtab.attachments.attach import attach
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.provider import ToolSpec
from trimtab.customize.customizations import Customizations
from trimtab.customize.skills import read_body
from trimtab.loop.processors.skills import fill_arguments, wrap
from trimtab.prompts.transform import render_prompt
from trimtab.providers.windows import DEFAULT, window_of
from trimtab.runtime.runtime import Runtime

UNKNOWN_MODEL = "gpt-5"
"""The model whose tokenizer counts if no model is configured."""


class PromptPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The first request of a session. `limit` is the token limit of a request."""

    model: str
    limit: int
    system: SystemPrompt
    tools: tuple[ToolSpec, ...]
    user: str

    @property
    def parts(self) -> list[Part]:
        message = {"user message": self.user} if self.user else {}
        return measure_parts(self.model, self.system.parts, self.tools, message)


async def preview_prompt(runtime: Runtime, options: SessionOptions, text: str) -> PromptPreview:
    """Return the request that a session with these options would send for a prompt."""
    prepared = await runtime.folders.inspect(options, Client())
    custom, resolved = await runtime.prepare(prepared)
    options = resolved.options
    model, limit = await _find_model(runtime, options)
    conditions = find_tool_conditions(custom, runtime.home, options.mode, model)
    tools = choose_tools(options, Client(), conditions)
    case = PromptCase(
        model=model,
        tools=frozenset(tools),
        mode=options.mode,
        limit=limit or 0,
        checkout=custom.checkout,
        customizations=custom,
    )
    return PromptPreview(
        model=model,
        limit=limit or DEFAULT,
        system=await build_prompt(case, options),
        tools=tuple(tool.spec for tool in tools.values()),
        user=_render(text, custom) if text else "",
    )


async def _find_model(runtime: Runtime, options: SessionOptions) -> tuple[str, int | None]:
    try:
        chosen = await runtime.models.choose(options)
    except TrimtabError:  # no service is configured, and showing the prompt needs none
        model = options.model or UNKNOWN_MODEL
        return model, window_of(model)
    await chosen.aclose()
    return chosen.model, chosen.prompt_limit


def _render(text: str, custom: Customizations) -> str:
    prompt = attach(text, (), custom.checkout.cwd)
    return render_prompt(_expand(text, custom), prompt.attachments)


def _expand(text: str, custom: Customizations) -> str:
    """Replace the call of a skill or command with its text."""
    name, _, arguments = text.removeprefix("/").partition(" ")
    skill = custom.find_skill(name.strip()) if text.startswith("/") else None
    if skill is None or not skill.user_invocable:
        return text
    body = fill_arguments(read_body(skill), arguments.strip())
    return body if skill.is_command else wrap(skill, body)
