"""Finds skills and commands: prompts with a name, in the folders of every convention."""

import os
from collections.abc import Collection, Iterator, Sequence

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
    look,
    read_text,
)

FILE = "SKILL.md"
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
COMMAND_DEPTH = 4
MANY = 300
"""Files from which on it is worth to keep what they came to."""
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


def find_skills(
    folders: Sequence[SkillFolder], disabled: Collection[str] = (), cache_folder: str = ""
) -> FoundSkills:
    """The skills and commands in some folders, in their order. Bodies are not read to the end.

    Where there are many, what they came to is kept in `cache_folder` for the next time.
    """
    skills: dict[str, Skill] = {}
    shadowed: list[Shadowed] = []
    problems: list[Problem] = []
    for found in _read_all(folders, cache_folder, problems):
        key = found.name
        if key in skills and found.plugin:
            key = f"{found.plugin}/{found.name}"
        if (winner := skills.get(key)) is not None:
            why = _why(found, winner)
            shadowed.append(Shadowed(key, found.path, found.source, winner.path, why, found.fields))
        elif key != found.name or key in disabled or found.path in disabled:
            enabled = key not in disabled and found.path not in disabled
            skills[key] = msgspec.structs.replace(found, name=key, enabled=enabled)
        else:
            skills[key] = found
    return FoundSkills(skills, tuple(shadowed), tuple(problems))


Read = tuple[Skill | None, Sequence[Problem]]
"""What one file came to, and what is wrong with it."""


def _read_all(
    folders: Sequence[SkillFolder], cache_folder: str, problems: list[Problem]
) -> Iterator[Skill]:
    """Every skill that can be read, each file once."""
    files = [(folder, *file) for folder in folders for file in _files(folder, problems)]
    cache = None
    if cache_folder and len(files) >= MANY:
        from time import time

        from trimtab.customize.skill_cache import SkillCache

        cache = SkillCache(cache_folder, folders, time())
    for folder, path, name, info in _look_at(files):
        kept = cache.get(path, name, info) if cache and info else None
        skill, wrong = kept or _read_skill(path, name, folder)
        problems += wrong
        if cache and info and skill and not kept:
            cache.put(info, name, skill, wrong)
        if skill is not None:
            yield skill
    if cache:
        cache.save()


def _look_at(
    files: Sequence[tuple[SkillFolder, str, str]],
) -> Iterator[tuple[SkillFolder, str, str, os.stat_result | None]]:
    """Those of the files that are there, each once, whatever names it goes by."""
    seen: set[tuple[int, int]] = set()
    for folder, path, name in files:
        info = look(path)
        if info is None:
            if os.path.lexists(path):  # a link to nowhere
                yield folder, path, name, None
        elif (identity := (info.st_dev, info.st_ino)) not in seen:
            seen.add(identity)
            yield folder, path, name, info


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
    """Where a folder may have skills, each place with the name a skill has without fields."""
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
    names = (name for name in listing.names if listing.is_folder(name))
    return [(f"{folder.path}{os.sep}{name}{os.sep}{FILE}", name) for name in names]


def _read_skill(path: str, name: str, folder: SkillFolder) -> Read:
    text, wrong = read_text(path, HEAD if path.endswith(".md") else LARGEST)
    if not text and wrong:
        return None, wrong
    if not name.isprintable():
        return None, [Problem(message="its name has control characters: rename it", file=path)]
    document = _split(text, path)
    # That only the beginning was read is no problem.
    problems = [*(one for one in wrong if one.line), *document.problems]
    if path.endswith(".toml") and not document.body:
        return None, problems
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
    return skill, [*problems, *fields.finish()]


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
