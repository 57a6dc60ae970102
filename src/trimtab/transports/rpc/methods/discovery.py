"""Finds agents, skills and instructions on disk, for programs that list them."""

import os

import msgspec

from trimtab.contracts.customization import Instruction
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import CustomizationOptions, SessionOptions
from trimtab.customize.customizations import Customizations
from trimtab.customize.describe import describe_agent, describe_skill
from trimtab.customize.folders import INSTRUCTION_FILES, RULES, agent_folders, skill_folders
from trimtab.customize.overview import gather
from trimtab.hooks.dry_run import list_hooks
from trimtab.transports.rpc.dispatch import Call, Methods

methods = Methods()


class Search(msgspec.Struct, rename="camel"):
    """The projects to search. Without any, only the person's own files are found."""

    project_paths: tuple[str, ...] | None = None
    skill_directories: tuple[str, ...] | None = None
    instruction_directories: tuple[str, ...] | None = None
    exclude_host_agents: bool = False
    exclude_host_skills: bool = False
    exclude_host_instructions: bool = False


@methods.on("agents.discover", Search)
async def discover_agents(call: Call, params: Search) -> JsonObject:
    found: dict[str, JsonObject] = {}
    for project, custom in _projects(call, params):
        for agent in custom.agents.agents.values():
            in_project = agent.origin in ("project", "inherited")
            if agent.origin == "builtin" or (in_project and not project):
                continue
            if in_project or not params.exclude_host_agents:
                described = {**describe_agent(agent), "path": agent.path}
                found.setdefault(agent.path, {k: v for k, v in described.items() if v is not None})
    return {"agents": list(found.values())}


@methods.on("skills.discover", Search)
async def discover_skills(call: Call, params: Search) -> JsonObject:
    found: dict[str, JsonObject] = {}
    errors: dict[str, None] = {}
    for project, custom in _projects(call, params):
        errors |= dict.fromkeys(
            problem.sentence for problem in custom.skills.problems if not problem.note
        )
        for skill in custom.skills.skills.values():
            in_project = skill.origin in ("project", "inherited")
            if (in_project and not project) or (params.exclude_host_skills and not in_project):
                continue
            described = describe_skill(skill) | ({"projectPath": project} if in_project else {})
            found.setdefault(skill.path, described)
    return {"skills": list(found.values()), "errors": list(errors)}


@methods.on("instructions.discover", Search)
async def discover_instructions(call: Call, params: Search) -> JsonObject:
    found: dict[str, JsonObject] = {}
    for project, custom in _projects(call, params):
        for instruction in custom.instructions.instructions:
            in_project = instruction.location != "user"
            if (in_project and not project) or (
                params.exclude_host_instructions and not in_project
            ):
                continue
            described = describe_instruction(instruction, custom)
            path = instruction.paths[0]
            found.setdefault(path, described | ({"projectPath": project} if in_project else {}))
    return {"sources": list(found.values())}


class HookSearch(msgspec.Struct, rename="camel"):
    project_paths: tuple[str, ...] = ()
    exclude_host_hooks: bool = False


@methods.on("hooks.discover", HookSearch)
async def discover_hooks(call: Call, params: HookSearch) -> JsonObject:
    """List the hooks of the person, of plugins and of trusted projects."""
    found: dict[str, JsonObject] = {}
    problems: dict[str, None] = {}
    for project in params.project_paths or (call.server.cwd,):
        listed = await list_hooks(call.server.env, project, trusted=False)
        problems |= dict.fromkeys(problem.sentence for problem in listed.found.problems)
        for entry in listed.entries:
            in_project = entry.origin == "repository"
            left_out = params.exclude_host_hooks if not in_project else not params.project_paths
            if left_out:
                continue
            hook_id = f"{entry.file}:{entry.line}:{entry.event}"
            found[hook_id] = {
                "id": hook_id,
                "hookType": entry.event,
                "origin": entry.origin,
                "source": entry.file,
                "enabled": not listed.obstacle(entry),
                "disableKey": entry.name,
                **({"projectPath": project} if in_project else {}),
            }
    return {"hooks": list(found.values()), "warnings": list(problems), "errors": []}


@methods.on("agents.getDiscoveryPaths", Search)
async def get_agent_paths(call: Call, params: Search) -> JsonObject:
    paths: dict[str, JsonObject] = {}
    for project, custom in _projects(call, params):
        for folder in agent_folders(custom.places):
            in_project = folder.origin != "user"
            if in_project and not project:
                continue
            paths[folder.path] = {
                "path": folder.path,
                "scope": "project" if in_project else "user",
                "preferredForCreation": folder.source in ("repository", "user"),
            }
    return {"paths": _one_preferred(list(paths.values()), "scope")}


@methods.on("skills.getDiscoveryPaths", Search)
async def get_skill_paths(call: Call, params: Search) -> JsonObject:
    paths: dict[str, JsonObject] = {}
    for project, custom in _projects(call, params):
        for folder in skill_folders(custom.places):
            in_project = folder.origin in ("project", "inherited")
            if in_project and not project:
                continue
            paths[folder.path] = {
                "path": folder.path,
                "scope": "project" if in_project else folder.origin,
                "preferredForCreation": folder.origin in ("project", "personal-copilot"),
            }
    return {"paths": _one_preferred(list(paths.values()), "scope")}


@methods.on("instructions.getDiscoveryPaths", Search)
async def get_instruction_paths(call: Call, params: Search) -> JsonObject:
    config = call.server.runtime.home.config
    paths = [
        _instruction_path(os.path.join(config, "copilot-instructions.md"), "file", "user"),
        _instruction_path(os.path.join(config, "instructions"), "directory", "user"),
    ]
    for project in params.project_paths or ():
        paths += [
            _instruction_path(os.path.join(project, name), "file", "repository")
            for name, _ in INSTRUCTION_FILES
        ]
        paths += [
            _instruction_path(os.path.join(project, name), "directory", "repository")
            for name, _, _ in RULES
        ]
    return {"paths": _one_preferred(paths, "location")}


def describe_instruction(instruction: Instruction, custom: Customizations) -> JsonObject:
    """Return an instruction in the form of the SDK."""
    path = instruction.paths[0]
    described: JsonObject = {
        "id": path,
        "label": custom.places.shorten(path),
        "sourcePath": path,
        "content": instruction.text,
        "type": _type_of(instruction),
        "location": "working-directory"
        if instruction.location == "directory"
        else instruction.location,
    }
    if instruction.globs:
        described["applyTo"] = list(instruction.globs)
    if instruction.description:
        described["description"] = instruction.description
    return described


def _type_of(instruction: Instruction) -> str:
    name = os.path.basename(instruction.paths[0])
    if name.endswith((".instructions.md", ".mdc")) or "/rules/" in instruction.paths[0]:
        return "vscode"
    if instruction.location == "user":
        return "home"
    if instruction.location == "directory":
        return "child-instructions"
    return "repo" if name == "copilot-instructions.md" else "model"


def _projects(call: Call, params: Search) -> list[tuple[str, Customizations]]:
    """Load the customizations of each project. Listing needs no trust: nothing is used."""
    projects = params.project_paths or ("",)
    found = []
    for project in projects:
        options = SessionOptions(
            cwd=os.path.abspath(project) if project else call.server.cwd,
            customize=CustomizationOptions(
                skill_directories=params.skill_directories or (),
                instruction_directories=params.instruction_directories or (),
            ),
        )
        custom = gather(call.server.env, options)
        custom.trusted = bool(project)
        found.append((project, custom))
    return found


def _instruction_path(path: str, kind: str, location: str) -> JsonObject:
    return {"path": path, "kind": kind, "location": location, "preferredForCreation": True}


def _one_preferred(paths: list[JsonObject], tier: str) -> list[JsonObject]:
    """Keep only the first preferred path of each tier."""
    seen: set[object] = set()
    for path in paths:
        path["preferredForCreation"] = path["preferredForCreation"] and path[tier] not in seen
        if path["preferredForCreation"]:
            seen.add(path[tier])
    return paths
