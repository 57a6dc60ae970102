"""Finds custom agents: Markdown files of every convention, and the built-in ones in YAML."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from trimtab.contracts.customization import AgentDefinition, FoundAgents, Problem, Shadowed
from trimtab.customize.fields import Fields
from trimtab.customize.folders import AgentFolder
from trimtab.customize.front_matter import YamlProblem, read_yaml, split_document
from trimtab.customize.reading import Listing, identify, read_text

BUILTIN = os.path.join(os.path.dirname(__file__), "builtin")
EVERY_TOOL = "*"
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
    "askuserquestion": ("ask_user",),
}
"""What other agents call tools, in lower case, and what they are called here."""
_MODEL_ALIASES = frozenset(("sonnet", "opus", "haiku", "fable", "default", "opusplan"))
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
}


def find_agents(folders: Sequence[AgentFolder], *, builtin: bool = True) -> FoundAgents:
    """The agents in some folders, in their order, and last the built-in ones."""
    agents: dict[str, AgentDefinition] = {}
    shadowed: list[Shadowed] = []
    problems: list[Problem] = []
    seen: set[tuple[int, int] | str] = set()
    for folder in folders:
        for path in _files(folder.path, problems):
            identity = identify(path)
            if identity in seen:
                continue
            seen.add(identity)
            agent = read_agent(path, folder, problems)
            if agent is not None:
                _enter(agent, agents, shadowed)
    for agent in builtin_agents(problems) if builtin else ():
        _enter(agent, agents, shadowed)
    return FoundAgents(agents, tuple(shadowed), tuple(problems))


def builtin_agents(problems: list[Problem]) -> list[AgentDefinition]:
    """Those that come with the program."""
    found = []
    for name in Listing(BUILTIN).names:
        path = os.path.join(BUILTIN, name)
        if not name.endswith(".agent.yaml"):
            continue
        text, _ = read_text(path)
        try:
            values = read_yaml(text, path)
        except YamlProblem as error:
            problems.append(error.problem)
            continue
        prompt = str(values.pop("prompt", ""))
        folder = AgentFolder(path=BUILTIN, source="builtin", origin="builtin")
        fields = Fields(values, path)
        agent = _build(fields, path, folder, prompt.strip())
        found.append(msgspec.structs.replace(agent, tools=_exactly(fields)))
    return found


def read_agent(path: str, folder: AgentFolder, problems: list[Problem]) -> AgentDefinition | None:
    """One Markdown file; None if there is no agent in it."""
    text, wrong = read_text(path)
    problems += wrong
    if not text.strip():
        if not wrong:
            problems.append(Problem(message="the file is empty: it holds no agent", file=path))
        return None
    document = split_document(text, path)
    if document.problems:
        problems += document.problems
        return None  # without its fields it would have every tool
    fields = Fields(document.fields, path, document.head)
    agent = _build(fields, path, folder, document.body.strip())
    problems += fields.finish()
    return agent


def read_given(values: Mapping[str, Any]) -> AgentDefinition:
    """An agent a client brings. Its tools are named as the client knows them."""
    given = dict(values)
    prompt = given.pop("prompt", None)
    folder = AgentFolder(path="", source="sdk", origin="user")
    fields = Fields(given, "")
    agent = _build(fields, str(given.get("name") or ""), folder, prompt or "")
    return msgspec.structs.replace(agent, path="", tools=_exactly(fields))


def _exactly(fields: Fields) -> tuple[str, ...] | None:
    """The tools whoever wrote the fields named as they are called here; None for all of them."""
    tools = fields.names("tools")
    return None if tools is None or EVERY_TOOL in tools else tools


def fill_prompt(agent: AgentDefinition, cwd: str) -> str:
    """The agent's own text, with what it may speak of filled in."""
    return agent.prompt.replace("{{cwd}}", cwd)


def map_tools(tools: Sequence[str] | None) -> tuple[str, ...] | None:
    """The tools an agent names, as they are called here; None for all of them."""
    if tools is None or EVERY_TOOL in tools:
        return None
    mapped: list[str] = []
    for tool in tools:
        name = tool.partition("(")[0].strip()  # Claude limits a tool to some arguments this way
        mapped += TOOL_NAMES.get(name.lower(), (name,))
    return tuple(dict.fromkeys(mapped))


def _enter(
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
    why = "NAME.agent.md wins over NAME.md" if same_folder else "the folder looked at first wins"
    shadowed.append(Shadowed(agent.name, agent.path, agent.source, winner.path, why))


def _files(folder: str, problems: list[Problem]) -> list[str]:
    """The Markdown files of a folder, `*.agent.md` before the others; a file is its own."""
    if os.path.isfile(folder):
        return [folder]
    listing = Listing(folder)
    if listing.problem:
        problems.append(listing.problem)
    names = [name for name in listing.names if name.endswith(".md") and name != "README.md"]
    names.sort(key=lambda name: not name.endswith(".agent.md"))
    paths = [os.path.join(folder, name) for name in names]
    return [path for path in paths if not os.path.isdir(path)]


def _build(fields: Fields, path: str, folder: AgentFolder, prompt: str) -> AgentDefinition:
    base = os.path.basename(path)
    for suffix in (".agent.md", ".agent.yaml", ".md"):
        base = base.removesuffix(suffix)
    fields.ignore(_NO_EFFECT)
    name = fields.text("name")
    tools = fields.names("tools")
    denied = fields.names("disallowedTools")
    if denied:
        fields.note("disallowedTools has no effect: use --excluded-tools", "disallowedTools")
    return AgentDefinition(
        name=base,
        path=path,
        source=folder.source,
        prompt=prompt,
        alias=name,
        display_name=fields.text("displayName", "display-name", "title") or name or base,
        description=fields.text("description"),
        tools=map_tools(tools),
        models=_models(fields),
        model_policy=_policy(fields),
        effort=fields.text("reasoningEffort", "reasoning-effort", "effort") or None,
        mcp_servers=_servers(fields),
        skills=fields.names("skills") or (),
        hooks=fields.object("hooks"),
        model_invocable=_model_may_call(fields),
        user_invocable=fields.flag("userInvocable", "user-invocable", default=True),
        include_instructions=fields.flag(
            "include-custom-instructions", "includeCustomInstructions", default=False
        ),
        origin=folder.origin,
        plugin=folder.plugin,
    )


def _model_may_call(fields: Fields) -> bool:
    infer = fields.flag("infer", default=True)
    disabled = fields.flag("disableModelInvocation", "disable-model-invocation", default=False)
    return infer and not disabled


def _models(fields: Fields) -> tuple[str, ...]:
    models = []
    for model in fields.names("model", "models") or ():
        if model in _MODEL_ALIASES:
            fields.note(f"the model {model!r} is no model's id, so the session's is used", "model")
        elif model != "inherit":
            models.append(model)
    return tuple(models)


def _policy(fields: Fields) -> Literal["preferred", "required"]:
    policy = fields.text("modelPolicy", "model-policy")
    if policy not in ("", "preferred", "required"):
        fields.note(f"modelPolicy is preferred or required, not {policy}", "modelPolicy")
    return "required" if policy == "required" else "preferred"


def _servers(fields: Fields) -> Mapping[str, Any]:
    """Inline servers by name. Claude also names servers that are set up elsewhere, in a list."""
    return fields.object("mcp-servers", "mcpServers", "mcp_servers")
