"""Finds skills and commands, which are named prompts, in the folders of every convention."""

import os
import time
from collections.abc import Collection, Iterator, Sequence

import msgspec

from trimtab.config.jsonc import JsonProblem
from trimtab.contracts.customization import FoundSkills, Problem, Shadowed, Skill
from trimtab.customize.fields import Fields
from trimtab.customize.folders import SkillFolder
from trimtab.customize.front_matter import Document, split_document
from trimtab.customize.parsing import parse_config
from trimtab.customize.reading import (
    MAX_BYTES,
    MAX_ENTRIES,
    Listing,
    Walk,
    read_text,
    stat_file,
)

FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1024
COMMAND_DEPTH = 4
CACHE_FROM = 300
"""The number of files from which on a cache saves time."""
HEAD = 16 * 1024
"""Bytes of a skill that are read to list it."""
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
    """Return the skills and commands in some folders; the first of a name wins.

    Only the beginning of each file is read. If there are many, they are cached in `cache_folder`.
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
"""The skill in a file, and the problems of the file."""


def _read_all(
    folders: Sequence[SkillFolder], cache_folder: str, problems: list[Problem]
) -> Iterator[Skill]:
    """Yield every skill that can be read, each file once."""
    files = [(folder, *file) for folder in folders for file in _files(folder, problems)]
    cache = None
    if cache_folder and len(files) >= CACHE_FROM:
        from trimtab.customize.skill_cache import SkillCache

        cache = SkillCache(cache_folder, folders, time.time())
    for folder, path, name, info in _find_existing(files):
        cached = cache.get(path, name, info) if cache and info else None
        skill, found = cached or _read_skill(path, name, folder)
        problems += found
        if cache and info and skill and not cached:
            cache.put(info, name, skill, found)
        if skill is not None:
            yield skill
    if cache:
        cache.save()


def _find_existing(
    files: Sequence[tuple[SkillFolder, str, str]],
) -> Iterator[tuple[SkillFolder, str, str, os.stat_result | None]]:
    """Yield the files that exist, each once even if it has several names."""
    seen: set[tuple[int, int]] = set()
    for folder, path, name in files:
        info = stat_file(path)
        if info is None:
            if os.path.lexists(path):  # a link to nowhere
                yield folder, path, name, None
        elif (identity := (info.st_dev, info.st_ino)) not in seen:
            seen.add(identity)
            yield folder, path, name, info


def read_body(skill: Skill) -> str:
    """Return the text of a skill, without its fields."""
    text, _ = read_text(skill.path)
    return _split(text, skill.path).body.strip()


def _split(text: str, path: str) -> Document:
    """Split a file into fields and body. Gemini's commands are TOML, with the body in a field."""
    if not path.endswith(".toml"):
        return split_document(text, path)
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
    return "the folder that is read first wins"


def _files(folder: SkillFolder, problems: list[Problem]) -> list[tuple[str, str]]:
    """Return the files of a folder that may be skills, with the names they have by default."""
    listing = Listing(folder.path)
    if listing.problem:
        problems.append(listing.problem)
    if folder.commands:
        walk = Walk(folder.path, folder.suffix, depth=COMMAND_DEPTH, entries=MAX_ENTRIES)
        problems += [problem for problem in walk.problems if problem != listing.problem]
        relative = ((path, os.path.relpath(path, folder.path)) for path in sorted(walk.files))
        return [
            (path, name.removesuffix(folder.suffix).replace(os.sep, ":")) for path, name in relative
        ]
    if FILE in listing.names:
        name = os.path.basename(folder.path.rstrip(os.sep))
        return [(os.path.join(folder.path, FILE), name)]
    names = (name for name in listing.names if listing.is_folder(name))
    return [(f"{folder.path}{os.sep}{name}{os.sep}{FILE}", name) for name in names]


def _read_skill(path: str, name: str, folder: SkillFolder) -> Read:
    text, text_problems = read_text(path, HEAD if path.endswith(".md") else MAX_BYTES)
    if not text and text_problems:
        return None, text_problems
    if not name.isprintable():
        return None, [Problem(message="its name has control characters: rename it", file=path)]
    document = _split(text, path)
    # Without a line, the problem is that only the beginning was read, which is intended.
    problems = [*(problem for problem in text_problems if problem.line), *document.problems]
    if path.endswith(".toml") and not document.body:
        return None, problems
    fields = Fields(document.fields, path, document.head)
    fields.text("prompt")
    if "!{" in document.body or "@{" in document.body:
        fields.note("commands in !{} are not run, and files in @{} are not read", "prompt")
    fields.ignore(_NO_EFFECT)
    given = fields.text("name")
    if given and not _is_name(given):
        fields.note(f"the name {given[:80]!r} cannot be used, {name} is used instead", "name")
        given = ""
    description = fields.text("description") or _first_lines(document)
    when = fields.text("when_to_use", "when-to-use")
    description = f"{description} {when}".strip()
    if len(description) > MAX_DESCRIPTION:
        fields.note(f"the description is cut at {MAX_DESCRIPTION} characters", "description")
    allowed = fields.names("allowed-tools", "allowedTools")
    if allowed:
        from trimtab.customize.skill_tools import find_unreadable

        for entry in find_unreadable(allowed):
            reason = f"allowed-tools allows nothing for {entry}: it is not a rule"
            fields.note(reason, "allowed-tools")
    skill = Skill(
        name=given or name,
        path=path,
        description=" ".join(description[:MAX_DESCRIPTION].split()),
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
    """Return the hint as text, also if `[a] [b]` was parsed as a YAML list."""
    fields.names("arguments")
    names = fields.names("argument-hint", "argumentHint")
    return " ".join(names or ())


def _is_name(name: str) -> bool:
    plain = name.translate(str.maketrans("", "", "-_.:"))
    return len(name) <= MAX_NAME and plain.isalnum()


def _first_lines(document: Document) -> str:
    lines = [line.strip().lstrip("# ") for line in document.body.split("\n") if line.strip()]
    return " ".join(lines[:3])
