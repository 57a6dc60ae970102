"""Finds the instruction files of every convention, in the order in which they are merged."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.customization import (
    FoundInstructions,
    Instruction,
    Location,
    Problem,
    Shadowed,
    Source,
)
from trimtab.customize.fields import Fields
from trimtab.customize.file_names import find_file_names
from trimtab.customize.folders import (
    INSTRUCTION_FILES,
    INSTRUCTIONS_VARIABLE,
    NAMING_SETTINGS,
    RULES,
    USER_INSTRUCTIONS,
)
from trimtab.customize.globs import GitIgnore, matches_everything
from trimtab.customize.places import Boundary, Places
from trimtab.customize.reading import Listing, Walk, read_text

if TYPE_CHECKING:
    from trimtab.customize.front_matter import Document

IGNORED = frozenset(
    ("node_modules", ".git", "vendor", "dist", "build", ".next", ".nuxt", "out", "coverage")
)
CHILD_DEPTH = 2
MAX_CHILD_FOLDERS = 2000
MAX_READ_FOLDERS = 500
"""Folders read at the start: a number, so that a busy machine tells the model no less."""
CHILD_SECONDS = 2.0
"""Only a file system that hardly answers takes so long."""


def find_instructions(
    places: Places, *, children: bool = False, extra: Sequence[str] = ()
) -> FoundInstructions:
    """Return the instructions for all files, and those for some files only.

    `children` adds two levels of folders below the working directory, `extra` further folders.
    """
    search = _Search(places)
    search.read_settings()
    search.read_user()
    search.read_folder(places.root, "repository")
    search.read_rules(places.root, "repository")
    search.walk(os.path.join(places.home.config, "instructions"), ".instructions.md", "user")
    search.walk(os.path.join(places.user, ".claude", "rules"), ".md", "claude", "user")
    for folder in reversed(places.chain[:-1]):
        search.read_folder(folder, "working-directory")
        search.read_rules(folder, "working-directory")
    if children:
        search.read_children(places.cwd)
    for folder in (*places.directories(INSTRUCTIONS_VARIABLE), *extra):
        search.read_extra(folder)
    return FoundInstructions(
        tuple(merge(search.found)), tuple(search.problems), tuple(search.left_out)
    )


def find_in_folders(places: Places, folders: Iterable[str]) -> list[Instruction]:
    """Return the instructions in folders below the root, without those in ignored folders."""
    search = _Search(places)
    search.read_settings()
    for folder in folders:
        if not IGNORED.intersection(os.path.relpath(folder, places.root).split(os.sep)):
            search.read_folder(folder, "directory")
    return search.found


def merge(found: Iterable[Instruction]) -> list[Instruction]:
    """Merge instructions with the same text and globs into one that has the paths of all.

    It takes the position of the first.
    """
    merged: dict[tuple[str, tuple[str, ...]], Instruction] = {}
    for instruction in found:
        key = (instruction.text, instruction.globs)
        first = merged.get(key)
        if first is None:
            merged[key] = instruction
        else:
            paths = tuple(dict.fromkeys((*first.paths, *instruction.paths)))
            merged[key] = msgspec.structs.replace(first, paths=paths)
    return list(merged.values())


def child_folders(folder: str) -> Iterator[str]:
    """Yield the folders below a folder, level by level, without ignored and generated ones."""
    git_ignore = GitIgnore(folder)
    level, left = [folder], MAX_CHILD_FOLDERS
    for _ in range(CHILD_DEPTH):
        below: list[str] = []
        for parent in level:
            for name in sorted(Listing(parent).folders - IGNORED):
                path = os.path.join(parent, name)
                if left and not git_ignore.ignores(os.path.relpath(path, folder)):
                    below.append(path)
                    left -= 1
                    yield path
        level = below


class _Search:
    """Collects instructions from files, and their problems."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.found: list[Instruction] = []
        self.problems: list[Problem] = []
        self.left_out: list[Shadowed] = []
        self._read: dict[tuple[str, str, bool], Instruction | None] = {}
        self._always: tuple[str, ...] = ()
        self._instead: tuple[str, ...] = ()
        root = os.path.realpath(places.root)
        home = tuple(
            os.path.realpath(os.path.join(base, name))
            for base, name in ((places.home.config, ""), (places.user, ".claude"))
        )
        self._project_boundary = Boundary((root, *home) if places.trusted else (root,), places.user)
        self._user_boundary = Boundary((os.path.realpath(places.user), *home), places.user)

    def read_settings(self) -> None:
        """Read the names of further instruction files from settings of other agents, if any."""
        places = self._places
        folders = (places.user, places.root) if places.trusted else (places.user,)
        if any(
            os.path.exists(os.path.join(folder, name))
            for folder in folders
            for name in NAMING_SETTINGS
        ):
            names = find_file_names(places)
            self._always, self._instead = names.always, names.instead
            self.problems += names.problems

    def read_user(self) -> None:
        path = os.path.join(self._places.home.config, "copilot-instructions.md")
        self._add(path, "user", "user")
        for name, source in USER_INSTRUCTIONS:
            self._add(os.path.join(self._places.user, name), source, "user")

    def read_folder(self, folder: str, location: Location) -> None:
        for name, source in INSTRUCTION_FILES:
            if name != "AGENTS.md" or not self._is_overridden(folder):
                self._add(os.path.join(folder, name), source, location)
        for name in self._always:
            self._add(os.path.join(folder, name), "gemini", location)
        if self._instead and not self._has_agents_file(folder):
            paths = (os.path.join(folder, name) for name in self._instead)
            if (first := next(filter(os.path.isfile, paths), None)) is not None:
                self._add(first, "codex", location)

    def _has_agents_file(self, folder: str) -> bool:
        names = ("AGENTS.md", "AGENTS.override.md")
        return any(os.path.exists(os.path.join(folder, name)) for name in names)

    def read_children(self, folder: str) -> None:
        """Read the first folders below a folder; the rest is read when it is touched."""
        deadline = time.monotonic() + CHILD_SECONDS
        for count, child in enumerate(child_folders(folder)):
            if count == MAX_READ_FOLDERS or time.monotonic() > deadline:
                message = "there are many folders here: some are read only when they are touched"
                self.problems.append(Problem(message=message, file=folder, note=True))
                return
            self.read_folder(child, "directory")

    def _is_overridden(self, folder: str) -> bool:
        """Return True if AGENTS.override.md, Codex's personal file, replaces AGENTS.md."""
        path = os.path.join(folder, "AGENTS.md")
        if not os.path.exists(os.path.join(folder, "AGENTS.override.md")):
            return False
        if os.path.exists(path):
            winner, why = os.path.join(folder, "AGENTS.override.md"), "it replaces AGENTS.md"
            name = self._places.shorten(path)
            self.left_out.append(Shadowed(name, path, "repository", winner, why))
        return True

    def read_rules(self, folder: str, location: Location) -> None:
        for name, suffix, source in RULES:
            self.walk(os.path.join(folder, name), suffix, source, location)

    def read_extra(self, folder: str) -> None:
        """Read a folder that a variable names: the usual files, and `*.instructions.md` files."""
        if not os.path.isdir(folder):
            message = f"{INSTRUCTIONS_VARIABLE} names {folder}, which is not a folder"
            self.problems.append(Problem(message=message))
            return
        before = len(self.found)
        for name, _ in INSTRUCTION_FILES:
            self._add(os.path.join(folder, name), "environment", "user")
        self._add(os.path.join(folder, "copilot-instructions.md"), "environment", "user")
        self.read_rules(folder, "user")
        for name in Listing(folder).names:
            if name.endswith(".instructions.md"):
                self._add(os.path.join(folder, name), "environment", "user")
        self.found[before:] = [
            msgspec.structs.replace(instruction, source="environment")
            for instruction in self.found[before:]
        ]

    def walk(self, folder: str, suffix: str, source: Source, location: Location = "user") -> None:
        if not os.path.isdir(folder):
            return
        walk = Walk(folder, suffix)
        self.problems += walk.problems
        for path in sorted(walk.files):
            self._add(path, source, location)

    def _add(self, path: str, source: Source, location: Location) -> None:
        if not os.path.lexists(path) or os.path.isdir(path):
            return
        boundary = self._user_boundary if location == "user" else self._project_boundary
        if location != "user" and not self._places.trusted and not boundary.allows(path):
            message = "it points outside this repository, which is not trusted, and is left out"
            self.problems.append(Problem(message=message, file=path))
            return
        key = os.path.realpath(path), os.path.dirname(path), source == "cursor"
        if key not in self._read:
            self._read[key] = self._read_file(path, source, boundary)
        if (read := self._read[key]) is not None:
            self.found.append(
                msgspec.structs.replace(read, paths=(path,), source=source, location=location)
            )

    def _read_file(self, path: str, source: Source, boundary: Boundary) -> Instruction | None:
        """Return the instruction in a file; None if it is empty or for manual use only."""
        text, problems = read_text(path)
        self.problems += problems
        body, scope = self._split(text, path, source)
        if scope.manual:
            name, why = self._places.shorten(path), "it has neither alwaysApply nor globs"
            self.left_out.append(Shadowed(name, path, source, "", why, scope.fields))
        if not body or scope.manual:
            return None
        imported: tuple[str, ...] = ()
        if "@" in body:
            from trimtab.customize.imports import resolve_imports

            whole = resolve_imports(body, path, boundary)
            self.problems += whole.problems
            body, imported = whole.text, whole.files
        return Instruction(
            text=body,
            paths=(path,),
            source=source,
            location="user",
            globs=scope.globs,
            description=scope.description,
            imports=imported,
            fields=scope.fields,
        )

    def _split(self, text: str, path: str, source: Source) -> "tuple[str, _Scope]":
        """Return the text without its fields, and the scope that they define."""
        if not text.startswith("---"):
            return text.strip(), _Scope()
        from trimtab.customize.front_matter import split_document

        document = split_document(text, path)
        self.problems += document.problems
        scope = _read_scope(document, path, source)
        self.problems += scope.problems
        return document.body.strip(), scope


class _Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The files an instruction applies to. A manual one is used only if a person asks for it."""

    globs: tuple[str, ...] = ()
    description: str = ""
    manual: bool = False
    problems: tuple[Problem, ...] = ()
    fields: tuple[str, ...] = ()


def _read_scope(document: "Document", path: str, source: Source) -> _Scope:
    if not document.fields:
        return _Scope()
    fields = Fields(document.fields, path, document.head)
    globs = fields.names("applyTo", "paths", "globs") or ()
    description = fields.text("description")
    manual = False
    if source == "cursor":
        always = fields.flag("alwaysApply", default=False)
        manual = not always and not globs
        globs = () if always else globs
    fields.text("name")
    fields.ignore({"excludeAgent": "no other agents read instructions here"})
    return _Scope(
        globs=() if matches_everything(globs) else globs,
        description=description,
        manual=manual,
        problems=fields.finish(),
        fields=fields.given,
    )
