"""Finds agents: Markdown and TOML files of every convention, and the built-in ones in YAML."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from trimtab.config.jsonc import JsonProblem
from trimtab.contracts.customization import (
    RUNTIME_NAMES,
    AgentDefinition,
    FoundAgents,
    Problem,
    Shadowed,
)
from trimtab.customize.fields import Fields
from trimtab.customize.folders import AgentFolder
from trimtab.customize.front_matter import (
    Document,
    YamlProblem,
    read_simple,
    read_yaml,
    split_document,
)
from trimtab.customize.parsing import parse_config
from trimtab.customize.reading import Listing, file_identity, read_text
from trimtab.tools.catalog import NAMES

BUILTIN = os.path.join(os.path.dirname(__file__), "builtin")
EVERY_TOOL = "*"
GENERAL = "general-purpose"
"""The built-in agent that has the instructions of the main agent."""
TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "read": ("view",),
    "notebookread": ("view",),
    "edit": ("edit", "create"),
    "multiedit": ("edit",),
    "write": ("create", "edit"),
    "notebookedit": ("edit",),
    "search": ("grep", "glob"),
    "grep": ("grep",),
    "glob": ("glob",),
    "ls": ("view",),
    "bash": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "shell": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "execute": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "powershell": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "agent": ("task",),
    "custom-agent": ("task",),
    "skill": ("skill",),
    "web": ("web_fetch", "web_search"),
    "webfetch": ("web_fetch",),
    "websearch": ("web_search",),
    "todo": ("sql",),
    "todowrite": ("sql",),
    "read_file": ("view",),
    "read_many_files": ("view",),
    "list_directory": ("view",),
    "write_file": ("create", "edit"),
    "replace": ("edit",),
    "grep_search": ("grep",),
    "search_file_content": ("grep",),
    "run_shell_command": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "google_web_search": ("web_search",),
    "write_todos": ("sql",),
    "activate_skill": ("skill",),
    "askuserquestion": ("ask_user",),
}
"""Tool names of other agents, in lower case, and the tools that replace them here."""
READING_TOOLS = ("view", "grep", "rg", "glob", "web_fetch", "web_search", "report_intent")
MODEL_ALIASES: Mapping[str, str] = {
    "sonnet": "sonnet",
    "opus": "opus",
    "haiku": "haiku",
    "fable": "fable",
    "opusplan": "opus",
    "sonnet[1m]": "sonnet",
    "opus[1m]": "opus",
}
"""Claude's names for the newest model of a family, and the family."""
_INHERITED_MODEL = ("inherit", "default")
_DISPLAY = ("displayName", "display-name", "display_name", "title")
_EFFORT = ("reasoningEffort", "reasoning-effort", "effort", "model_reasoning_effort")
_NO_EFFECT = {
    "color": "agents have no colours here",
    "background": "whoever starts an agent says whether it runs in the background",
    "memory": "agents have no memory of their own here",
    "permissionMode": "permissions are the person's choice, not the file's",
    "maxTurns": "limits are set with --max-turns",
    "initialPrompt": "the prompt is what the person gives",
    "isolation": "agents run in the working directory of their session",
    "sidekick": "agents are started by a person or by the task tool only",
    "deferred-tool-loading": "all tools are offered from the start",
    "handoffs": "handing over needs an editor",
    "argument-hint": "an agent takes no arguments",
    "target": "agents are used wherever they are found",
    "metadata": "it is for people who share the agent",
    "license": "it is for people who share the agent",
    "version": "it is for people who share the agent",
    "disabled": "remove the file, or leave the agent unused",
    "omitClaudeMd": "use include-custom-instructions",
    "agents": "which agents it may start is not limited by the file",
    "mode": "the mode is chosen with --mode",
    "approval_policy": "permissions are the person's choice, not the file's",
    "is_background": "whoever starts an agent says whether it runs in the background",
    "nickname_candidates": "an agent goes by its own name",
    "kind": "agents run on this machine",
    "agent_card_url": "agents run on this machine",
    "agent_card_json": "agents run on this machine",
    "auth": "agents run on this machine",
    "temperature": "the model's own is used",
    "max_turns": "limits are set with --max-turns",
    "timeout_mins": "limits are set with --deadline",
}


def find_agents(
    folders: Sequence[AgentFolder], *, builtin: bool = True, known_tools: Collection[str] = ()
) -> FoundAgents:
    """Return the agents in some folders, and the built-in ones; the first of a name wins.

    If `known_tools` are given, other tools that an agent names are noted as problems.
    """
    agents: dict[str, AgentDefinition] = {}
    shadowed: list[Shadowed] = []
    problems: list[Problem] = []
    seen: set[tuple[int, int] | str] = set()
    for folder in folders:
        for path in _files(folder.path, problems):
            identity = file_identity(path)
            if identity in seen:
                continue
            seen.add(identity)
            agent = read_agent(path, folder, problems, known_tools)
            if agent is not None:
                _add(agent, agents, shadowed)
    for agent in builtin_agents(problems) if builtin else ():
        _add(agent, agents, shadowed)
    return FoundAgents(agents, tuple(shadowed), tuple(problems))


def builtin_agents(problems: list[Problem]) -> list[AgentDefinition]:
    """Return the agents that come with the program."""
    found = []
    for name in Listing(BUILTIN).names:
        path = os.path.join(BUILTIN, name)
        if not name.endswith(".agent.yaml"):
            continue
        text, _ = read_text(path)
        try:
            values = read_simple(text) or read_yaml(text, path)
        except YamlProblem as error:
            problems.append(error.problem)
            continue
        prompt = str(values.pop("prompt", ""))
        folder = AgentFolder(path=BUILTIN, source="builtin", origin="builtin")
        fields = Fields(values, path)
        agent = _build(fields, path, folder, prompt.strip())
        found.append(msgspec.structs.replace(agent, tools=_unmapped_tools(fields)))
    return found


TOOL_LISTS = ("tools", "disallowedTools")
"""The fields that limit the tools of an agent."""
_LIKE = re.compile("t+o+l")
"""Found in the names that people give these fields: `toools`, `allowed-tools`."""


def read_agent(
    path: str, folder: AgentFolder, problems: list[Problem], known_tools: Collection[str] = ()
) -> AgentDefinition | None:
    """Read an agent from a file; return None if it cannot be used."""
    text, text_problems = read_text(path)
    problems += text_problems
    if not text.strip():
        if not text_problems:
            problems.append(Problem(message="the file is empty and is left out", file=path))
        return None
    document = _split(text, path)
    problems += document.problems
    if document.problems and not document.fields:
        return None  # without its fields, it would have all tools
    fields = Fields(document.fields, path, document.head)
    if document.fields.get("kind") == "remote":
        fields.note("it is left out: agents run on this machine", "kind")
        problems += fields.problems
        return None
    agent = _build(fields, path, folder, document.body.strip())
    if known_tools:
        _note_unknown(fields, "tools", known_tools)
        _note_unknown(fields, "disallowedTools", known_tools)
    problems += fields.finish()
    if reason := _refuse(agent, document.fields):
        problems.append(Problem(message=f"it is left out: {reason}", file=path))
        return None
    return agent


def _refuse(agent: AgentDefinition, fields: Mapping[str, Any]) -> str:
    if not agent.name.isprintable():
        return "its name has control characters"
    for name in TOOL_LISTS:
        if not _is_list_of_names(fields.get(name)):
            return f"its list of tools cannot be read, so it would have all tools; correct {name}"
    if misspelt := _find_misspelt(agent.denied_tools):
        return f"it forbids the tool {misspelt[0]}, which nobody has; did you mean {misspelt[1]}?"
    for name in fields:
        plain = re.sub("[^a-z]", "", str(name).lower())
        if name not in (*TOOL_LISTS, *_NO_EFFECT) and _LIKE.search(plain):
            return (
                f"{name!r} is no field of agents, so it would have all tools; write tools or "
                "disallowedTools"
            )
    return ""


def _find_misspelt(tools: Sequence[str]) -> tuple[str, str] | None:
    """Return the first tool that is almost the name of one, and that name."""
    for tool in tools:
        if tool not in NAMES and "/" not in tool and not tool.startswith("mcp__"):
            from difflib import get_close_matches

            if close := get_close_matches(tool, NAMES, 1, 0.75):
                return tool, close[0]
    return None


def _is_list_of_names(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str)


def _split(text: str, path: str) -> Document:
    """Split a file into fields and prompt. Codex's agents are TOML, with the prompt in a field."""
    if not path.endswith(".toml"):
        return split_document(text, path)
    try:
        values = parse_config(path, text)
    except JsonProblem as error:
        problem = Problem(message=str(error), file=path, line=error.line)
        return Document(fields={}, body="", problems=(problem,))
    return Document(fields=values, body=str(values.get("developer_instructions", "")), head=text)


def read_given(values: Mapping[str, Any]) -> AgentDefinition:
    """Return the agent that a client of the SDK defines. Its tools are not mapped."""
    given = dict(values)
    prompt = given.pop("prompt", None)
    folder = AgentFolder(path="", source="sdk", origin="user")
    fields = Fields(given, "")
    agent = _build(fields, str(given.get("name") or ""), folder, prompt or "")
    return msgspec.structs.replace(agent, path="", tools=_unmapped_tools(fields))


def _unmapped_tools(fields: Fields) -> tuple[str, ...] | None:
    """Return the tools as they are written; None for all tools."""
    tools = fields.names("tools")
    return None if tools is None or EVERY_TOOL in tools else tools


def fill_prompt(agent: AgentDefinition, cwd: str) -> str:
    """Return the agent's prompt with its variables replaced."""
    return agent.prompt.replace("{{cwd}}", cwd)


def map_tools(tools: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names that an agent's tools have here; None for all tools."""
    if tools is None or EVERY_TOOL in tools:
        return None
    mapped: list[str] = []
    for tool in tools:
        name = tool.partition("(")[0].strip()  # Claude: `Bash(git:*)` limits the arguments
        group = name.lower().partition("/")[0]  # editors group tools: `search/codebase`
        mapped += TOOL_NAMES.get(name.lower()) or TOOL_NAMES.get(group) or (name,)
    return tuple(dict.fromkeys(mapped))


def _note_unknown(fields: Fields, field: str, known: Collection[str]) -> None:
    """Add a problem for each unknown tool that a file names."""
    for tool in fields.names(field) or ():
        if tool == EVERY_TOOL or any(name in known for name in map_tools((tool,)) or ()):
            continue
        if "/" in tool or tool.startswith("mcp__"):
            continue  # a tool of an MCP server, which is known only when it is connected
        reason = (
            f"there is no built-in tool {tool}: it has an effect only if a Python tool, an MCP "
            "server or a client has this name"
        )
        fields.note(reason, field)


def _add(
    agent: AgentDefinition, agents: dict[str, AgentDefinition], shadowed: list[Shadowed]
) -> None:
    winner = agents.get(agent.name)
    if winner is not None and agent.plugin:
        agent = msgspec.structs.replace(agent, name=f"{agent.plugin}/{agent.name}")
        winner = agents.get(agent.name)
    if winner is None:
        agents[agent.name] = agent
        return
    same_folder = os.path.dirname(agent.path) == os.path.dirname(winner.path)
    why = "NAME.agent.md wins over NAME.md" if same_folder else "the folder that is read first wins"
    shadowed.append(Shadowed(agent.name, agent.path, agent.source, winner.path, why, agent.fields))


def _files(folder: str, problems: list[Problem]) -> list[str]:
    """Return the agent files of a folder, `*.agent.md` first. The path may be a file."""
    if os.path.isfile(folder):
        return [folder]
    listing = Listing(folder)
    if listing.problem:
        problems.append(listing.problem)
    names = [
        name for name in listing.names if name.endswith((".md", ".toml")) and name != "README.md"
    ]
    names.sort(key=lambda name: not name.endswith(".agent.md"))
    return [os.path.join(folder, name) for name in names if not listing.is_folder(name)]


def _build(fields: Fields, path: str, folder: AgentFolder, prompt: str) -> AgentDefinition:
    base = os.path.basename(path)
    for suffix in (".agent.md", ".agent.yaml", ".md", ".toml"):
        base = base.removesuffix(suffix)
    fields.ignore(_NO_EFFECT)
    fields.text("developer_instructions")
    name = fields.text("name")
    tools = fields.names("tools")
    return AgentDefinition(
        name=base,
        path=path,
        source=folder.source,
        prompt=prompt,
        alias=name,
        display_name=fields.text(*_DISPLAY) or name or base,
        description=fields.text("description"),
        tools=_limit_to_reading(fields, map_tools(tools)),
        denied_tools=map_tools(fields.names("disallowedTools")) or (),
        models=_models(fields),
        model_policy=_policy(fields),
        effort=fields.text(*_EFFORT) or None,
        runtime=_runtime(fields),
        mcp_servers=_servers(fields),
        skills=fields.names("skills") or (),
        hooks=fields.object("hooks"),
        model_invocable=_model_may_call(fields),
        user_invocable=fields.flag("userInvocable", "user-invocable", default=True),
        read_only=folder.source == "builtin" and fields.flag("readOnly", default=False),
        include_instructions=fields.flag(
            "include-custom-instructions", "includeCustomInstructions", default=False
        ),
        origin=folder.origin,
        plugin=folder.plugin,
        fields=fields.given,
    )


def _limit_to_reading(fields: Fields, tools: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Keep only the tools that read, for agents that Cursor or Codex mark as read-only."""
    only_reads = fields.flag("readonly", default=False)
    sandbox = fields.text("sandbox_mode")
    if sandbox and sandbox != "read-only":
        fields.note("sandbox_mode has no effect: it is the person's choice", "sandbox_mode")
    if not only_reads and sandbox != "read-only":
        return tools
    return (
        READING_TOOLS if tools is None else tuple(tool for tool in tools if tool in READING_TOOLS)
    )


def _model_may_call(fields: Fields) -> bool:
    infer = fields.flag("infer", default=True)
    disabled = fields.flag("disableModelInvocation", "disable-model-invocation", default=False)
    return infer and not disabled


def _models(fields: Fields) -> tuple[str, ...]:
    models = []
    for model in fields.names("model", "models") or ():
        if model in MODEL_ALIASES:
            newest = f"the newest available Claude {MODEL_ALIASES[model].title()}"
            fields.note(f"the model {model} is {newest}, or else the session's model", "model")
        if model == "fast":
            fields.note("there is no model fast, so the session's model is used", "model")
        elif model not in _INHERITED_MODEL:
            models.append(model)
    return tuple(models)


def _policy(fields: Fields) -> Literal["preferred", "required"]:
    policy = fields.text("modelPolicy", "model-policy")
    if policy not in ("", "preferred", "required"):
        fields.note(f"modelPolicy must be preferred or required, not {policy}", "modelPolicy")
    return "required" if policy == "required" else "preferred"


def _runtime(fields: Fields) -> str:
    """Return the runtime that a file names. An unknown one stays, so that a run with it fails."""
    runtime = fields.text("runtime")
    if runtime not in ("", *RUNTIME_NAMES):
        known = ", ".join(RUNTIME_NAMES)
        fields.note(f"there is no runtime {runtime}; use one of {known}", "runtime")
    return runtime


def _servers(fields: Fields) -> Mapping[str, Any]:
    """Return inline servers by name. In Claude's list, strings name servers of other files."""
    names = ("mcp-servers", "mcpServers", "mcp_servers")
    listed = fields.items(*names)
    if listed is None:
        return fields.object(*names)
    inline = [item for item in listed if isinstance(item, dict)]
    return {str(name): server for item in inline for name, server in item.items()}
