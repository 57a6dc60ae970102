"""Instruction files that Gemini's and Codex's settings name, besides those of every convention."""

import os
from typing import Any

import msgspec

from trimtab.config.jsonc import JsonProblem
from trimtab.contracts.customization import Problem
from trimtab.customize.folders import NAMING_SETTINGS
from trimtab.customize.parsing import parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import read_text

TEXTS = (".md", ".mdc", ".markdown", ".txt", ".rst")
MOST = 16


class FileNames(msgspec.Struct, frozen=True):
    """Names of files in any folder: Gemini's always count, Codex's where there is no AGENTS.md."""

    always: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_file_names(places: Places) -> FileNames:
    """What the person's settings name, and those of a repository that is trusted."""
    found: dict[str, list[str]] = {one: [] for one in NAMING_SETTINGS}
    problems: list[Problem] = []
    for folder in (places.user, places.root) if places.trusted else (places.user,):
        for name in NAMING_SETTINGS:
            path = os.path.join(folder, name)
            given = _names(path) if os.path.isfile(path) else []
            good = [one for one in given if _is_text(one)]
            problems += [_refuse(one, path) for one in given if one not in good]
            found[name] += good
    always, instead = (tuple(dict.fromkeys(names))[:MOST] for names in found.values())
    return FileNames(always, instead, tuple(problems))


def _names(path: str) -> list[str]:
    """What is wrong with the file itself is told where its servers and settings are read."""
    text, _ = read_text(path, 1024 * 1024)
    try:
        content = parse_config(path, text) if text.strip() else {}
    except JsonProblem:
        return []
    if not isinstance(content, dict):
        return []
    context = content.get("context")
    value: Any = content.get("project_doc_fallback_filenames") or content.get("contextFileName")
    if isinstance(context, dict) and "fileName" in context:
        value = context["fileName"]
    listed = [value] if isinstance(value, str) else value
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _is_text(name: str) -> bool:
    """Settings must not have just any file sent to a model: no `.env`, nothing elsewhere."""
    return name == os.path.basename(name) and name.endswith(TEXTS)


def _refuse(name: str, path: str) -> Problem:
    message = f"the instruction file {name[:80]!r} is left out: a name that ends in .md is needed"
    return Problem(message=message, file=path)
