"""Finds the names of instruction files that settings of Gemini and Codex add."""

import os
from typing import Any

import msgspec

from trimtab.config.jsonc import JsonProblem
from trimtab.contracts.customization import Problem
from trimtab.customize.folders import NAMING_SETTINGS
from trimtab.customize.parsing import parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import read_text

TEXT_SUFFIXES = (".md", ".mdc", ".markdown", ".txt", ".rst")
MAX_NAMES = 16


class FileNames(msgspec.Struct, frozen=True):
    """File names that count in every folder: `always`, or `instead` of a missing AGENTS.md."""

    always: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_file_names(places: Places) -> FileNames:
    """Return the names in the person's settings and in those of a trusted repository."""
    found: dict[str, list[str]] = {name: [] for name in NAMING_SETTINGS}
    problems: list[Problem] = []
    for folder in (places.user, places.root) if places.trusted else (places.user,):
        for name in NAMING_SETTINGS:
            path = os.path.join(folder, name)
            given = _names(path) if os.path.isfile(path) else []
            usable = [file for file in given if _is_text(file)]
            problems += [_refuse(file, path) for file in given if file not in usable]
            found[name] += usable
    always, instead = (tuple(dict.fromkeys(names))[:MAX_NAMES] for names in found.values())
    return FileNames(always, instead, tuple(problems))


def _names(path: str) -> list[str]:
    """Return the names in a settings file. Errors in it are reported with its other settings."""
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
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _is_text(name: str) -> bool:
    """Return True for a text file in the same folder: settings must not send `.env` to a model."""
    return name == os.path.basename(name) and name.endswith(TEXT_SUFFIXES)


def _refuse(name: str, path: str) -> Problem:
    message = f"the instruction file {name[:80]!r} is left out: its name must end in .md"
    return Problem(message=message, file=path)
