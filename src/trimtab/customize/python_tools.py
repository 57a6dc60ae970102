"""Tools written in Python: installed ones, those of the person, those of a trusted project."""

import os
import sys
from typing import TYPE_CHECKING, Any

from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.questions import Loadable
from trimtab.contracts.tool import Tool
from trimtab.tools.catalog import NAMES

if TYPE_CHECKING:
    from trimtab.customize.context import SessionContext
    from trimtab.tools.function import FunctionTool

GROUP = "trimtab.tools"
PROJECT = os.path.join(".github", "tools")
Mark = tuple[int, int, int]


class PythonTools:
    """The tools of one session. Files are looked at before each prompt, and read when changed."""

    def __init__(self, context: "SessionContext") -> None:
        self._context = context
        self._marks: dict[str, Mark] | None = None
        self._installed: dict[str, Tool] | None = None
        self.tools: tuple[Tool, ...] = ()

    async def refresh(self) -> bool:
        """Load what changed; whether anything did."""
        marks = self._look()
        if marks == self._marks or (not marks and self._marks is None and not has_installed()):
            self._marks = marks
            return False
        self._marks = marks
        found = dict(self._find_installed())
        for path in await self._admitted(marks):
            for tool in self._load(path):
                self._add(found, tool, path)
        self.tools = tuple(found.values())
        return True

    def _look(self) -> dict[str, Mark]:
        context, folders = self._context, list[str]()
        if context.home is not None:
            folders.append(os.path.join(context.home.config, "tools"))
        if context.trust is not None and context.trust.trusted:
            folders.append(os.path.join(context.trust.root, PROJECT))
        return {path: mark for folder in folders for path, mark in list_files(folder)}

    async def _admitted(self, marks: dict[str, Mark]) -> list[str]:
        """The files, without those of the project that are not as they were trusted."""
        trust = self._context.trust
        root = f"{trust.root}{os.sep}" if trust else ""
        project = [path for path in marks if root and path.startswith(root)]
        if trust is None or not project:
            return list(marks)
        entries = [(Loadable("tools", path.removeprefix(root)), digest(path)) for path in project]
        admitted = await trust.admit(self._context.session, "tools", entries)
        refused = {path for path, may in zip(project, admitted, strict=True) if not may}
        return [path for path in marks if path not in refused]

    def _find_installed(self) -> dict[str, Tool]:
        if self._installed is None:
            self._installed = {}
            if has_installed():
                from importlib.metadata import entry_points

                for entry in entry_points(group=GROUP):
                    for tool in self._import(entry.name, entry.load):
                        self._add(self._installed, tool, f"the installed {entry.value}")
        return self._installed

    def _load(self, path: str) -> "list[FunctionTool]":
        def load() -> object:
            from importlib.util import module_from_spec, spec_from_file_location

            name = f"trimtab_tool_file_{os.path.basename(path)[:-3]}"
            spec = spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = module_from_spec(spec)
            sys.modules[name] = module
            # Not by the loader: its cache of compiled files goes by whole seconds.
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), module.__dict__)  # noqa: S102 - trusted
            return module

        return self._import(path, load)

    def _import(self, where: str, load: Any) -> "list[FunctionTool]":
        from trimtab.tools.function import find_tools

        try:
            loaded = load()
            names = vars(loaded) if hasattr(loaded, "__file__") else {"": loaded}
            return find_tools(names)
        except (Exception, SystemExit) as error:  # somebody else's code: it may do anything
            self._warn(f"{where} gives no tools ({type(error).__name__}: {error}); correct it.")
            return []

    def _add(self, found: dict[str, Tool], tool: "FunctionTool", where: str) -> None:
        name = tool.spec.name
        if name in NAMES:
            self._warn(f"The tool {name} of {where} has the name of a built-in one; rename it.")
        else:
            tool.source = where
            found[name] = tool

    def _warn(self, message: str) -> None:
        self._context.session.emit(SessionWarning(warning_type="tool_file", message=message))


def list_files(folder: str) -> list[tuple[str, Mark]]:
    """The Python files of a folder and what tells whether they changed."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return []
    found: list[tuple[str, Mark]] = []
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".py") and not name.startswith(("_", ".")) and os.path.isfile(path):
            info = os.stat(path)
            found.append((path, (info.st_ino, info.st_size, info.st_mtime_ns)))
    return found


def has_installed() -> bool:
    """Whether any package has tools; `importlib.metadata` would take 20 ms to say so."""
    for folder in sys.path:
        try:
            names = [name for name in os.listdir(folder or ".") if name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names:
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if f"[{GROUP}]".encode() in file.read():
                        return True
            except OSError:
                continue
    return False


def digest(path: str) -> str:
    import hashlib

    try:
        with open(path, "rb") as file:
            return f"sha256:{hashlib.sha256(file.read()).hexdigest()}"
    except OSError:
        return ""
