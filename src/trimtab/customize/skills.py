"""Finds skills and commands: prompts with a name, in the folders of every convention."""

import os
from collections.abc import Collection, Sequence

import msgspec

from trimtab.contracts.customization import FoundSkills, Problem, Shadowed, Skill
from trimtab.customize.fields import Fields
from trimtab.customize.folders import SkillFolder
from trimtab.customize.front_matter import Document, split_document
from trimtab.customize.reading import (
    LARGEST,
    MOST_ENTRIES,
    Listing,
    Walk,
    identify,
    read_text,
)

FILE = "SKILL.md"
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
COMMAND_DEPTH = 4
HEAD = 16 * 1024
"""Bytes of a file that are read to list it."""
NO_GRANT = "what runs without being asked is the person's choice (--allow-tool), not a file's"
_NO_EFFECT = {
    "license": "it is for people who share the skill",
    "compatibility": "it is for people who share the skill",
    "metadata": "it is for people who share the skill",
    "version": "it is for people who share the skill",
    "model": "a skill runs in the session that uses it, with that session's model",
    "effort": "a skill runs in the session that uses it",
    "context": "a skill runs in the session that uses it",
    "agent": "a skill runs in the session that uses it",
    "hooks": "hooks are read from hook files and plugins only",
    "paths": "a skill is offered for all files",
    "shell": "commands inside a skill are not run",
    "disallowed-tools": "a skill runs in the session that uses it, with that session's tools",
    "mode": "a skill runs in the session that uses it",
}


def find_skills(folders: Sequence[SkillFolder], disabled: Collection[str] = ()) -> FoundSkills:
    """The skills and commands in some folders, in their order. Bodies are not read to the end."""
    skills: dict[str, Skill] = {}
    shadowed: list[Shadowed] = []
    problems: list[Problem] = []
    seen: set[tuple[int, int] | str] = set()
    for folder in folders:
        for path, name in _files(folder, problems):
            identity = identify(path)
            if identity in seen:
                continue
            seen.add(identity)
            skill = _read_skill(path, name, folder, problems)
            if skill is None:
                continue
            key = skill.name
            if key in skills and skill.plugin:
                key = f"{skill.plugin}/{skill.name}"
                skill = msgspec.structs.replace(skill, name=key)
            if (winner := skills.get(key)) is not None:
                why = _why(skill, winner)
                shadowed.append(Shadowed(key, path, skill.source, winner.path, why, skill.fields))
                continue
            if key in disabled or skill.path in disabled:
                skill = msgspec.structs.replace(skill, enabled=False)
            skills[key] = skill
    return FoundSkills(skills, tuple(shadowed), tuple(problems))


def read_body(skill: Skill) -> str:
    """What a skill says, without its fields."""
    text, _ = read_text(skill.path)
    return _split(text, skill.path).body.strip()


def _split(text: str, path: str) -> Document:
    """Fields and body of a file. Gemini's commands are TOML, the body being one of the fields."""
    if not path.endswith(".toml"):
        return split_document(text, path)
    from trimtab.config.jsonc import JsonProblem
    from trimtab.customize.parsing import parse_config

    try:
        fields = parse_config(path, text)
    except JsonProblem as error:
        problem = Problem(message=str(error), file=path, line=error.line)
        return Document(fields={}, body="", problems=(problem,))
    prompt = fields.get("prompt")
    if not isinstance(prompt, str):
        problem = Problem(message="it has no text prompt; it is left out", file=path)
        return Document(fields=fields, body="", problems=(problem,))
    return Document(fields=fields, body=prompt.replace("{{args}}", "$ARGUMENTS"), head=text)


def _why(skill: Skill, winner: Skill) -> str:
    if skill.is_command and not winner.is_command:
        return "a skill wins over a command of the same name"
    return "the folder that is looked at first wins"


def _files(folder: SkillFolder, problems: list[Problem]) -> list[tuple[str, str]]:
    """The files of a folder that hold a skill, each with the name it has without fields."""
    listing = Listing(folder.path)
    if listing.problem:
        problems.append(listing.problem)
    if folder.commands:
        walk = Walk(folder.path, folder.suffix, depth=COMMAND_DEPTH, entries=MOST_ENTRIES)
        problems += [one for one in walk.problems if one != listing.problem]
        relative = ((path, os.path.relpath(path, folder.path)) for path in sorted(walk.files))
        return [
            (path, name.removesuffix(folder.suffix).replace(os.sep, ":")) for path, name in relative
        ]
    if FILE in listing.names:
        alone = os.path.basename(folder.path.rstrip(os.sep))
        return [(os.path.join(folder.path, FILE), alone)]
    candidates = ((os.path.join(folder.path, name, FILE), name) for name in listing.names)
    return [(path, name) for path, name in candidates if os.path.lexists(path)]


def _read_skill(path: str, name: str, folder: SkillFolder, problems: list[Problem]) -> Skill | None:
    text, wrong = read_text(path, HEAD if path.endswith(".md") else LARGEST)
    if not text and wrong:
        problems += wrong
        return None
    if not name.isprintable():
        problems.append(Problem(message="its name has control characters: rename it", file=path))
        return None
    problems += (one for one in wrong if one.line)  # that only the beginning was read is no problem
    document = _split(text, path)
    problems += document.problems
    if path.endswith(".toml") and not document.body:
        return None
    fields = Fields(document.fields, path, document.head)
    fields.text("prompt")
    if "!{" in document.body or "@{" in document.body:
        fields.note("what stands in !{} and @{} is not run or read", "prompt")
    fields.ignore(_NO_EFFECT)
    given = fields.text("name")
    if given and not _is_name(given):
        fields.note(f"the name {given[:80]!r} cannot be used, {name} is used instead", "name")
        given = ""
    description = fields.text("description") or _first_lines(document)
    when = fields.text("when_to_use", "when-to-use")
    description = f"{description} {when}".strip()
    if len(description) > LONGEST_DESCRIPTION:
        fields.note(f"the description is cut at {LONGEST_DESCRIPTION} characters", "description")
    allowed = fields.names("allowed-tools", "allowedTools")
    if allowed is not None:
        fields.note(f"allowed-tools allows nothing: {NO_GRANT}", "allowed-tools")
    skill = Skill(
        name=given or name,
        path=path,
        description=" ".join(description[:LONGEST_DESCRIPTION].split()),
        source=folder.source,
        origin=folder.origin,
        allowed_tools=allowed,
        argument_hint=_hint(fields),
        user_invocable=fields.flag("user-invocable", "userInvocable", default=True),
        model_invocable=not fields.flag(
            "disable-model-invocation", "disableModelInvocation", default=False
        ),
        is_command=folder.commands,
        plugin=folder.plugin,
        fields=fields.given,
    )
    problems += fields.finish()
    return skill


def _hint(fields: Fields) -> str:
    """`[a] [b]` without quotes is a list in YAML: people mean the text."""
    fields.names("arguments")
    names = fields.names("argument-hint", "argumentHint")
    return " ".join(names or ())


def _is_name(name: str) -> bool:
    plain = name.translate(str.maketrans("", "", "-_.:"))
    return len(name) <= LONGEST_NAME and plain.isalnum()


def _first_lines(document: Document) -> str:
    lines = [line.strip().lstrip("# ") for line in document.body.split("\n") if line.strip()]
    return " ".join(lines[:3])
