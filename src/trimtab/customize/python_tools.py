"""Loads tools written in Python: from packages, the person's files, and a trusted project."""

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
Stamp = tuple[int, int, int]
"""The inode, size and mtime of a file."""


class PythonTools:
    """The Python tools of a session. Files that changed are loaded again before each prompt."""

    def __init__(self, context: "SessionContext") -> None:
        self._context = context
        self._stamps: dict[str, Stamp] | None = None
        self._installed: dict[str, Tool] | None = None
        self.tools: tuple[Tool, ...] = ()

    async def refresh(self) -> bool:
        """Load the tools again if a file changed; return True if one did."""
        stamps = self._read_stamps()
        if stamps == self._stamps or (not stamps and self._stamps is None and not has_installed()):
            self._stamps = stamps
            return False
        self._stamps = stamps
        found = dict(self._find_installed())
        for path in await self._find_admitted(stamps):
            for tool in self._load(path):
                self._add(found, tool, path)
        self.tools = tuple(found.values())
        return True

    def _read_stamps(self) -> dict[str, Stamp]:
        context, folders = self._context, list[str]()
        if context.home is not None:
            folders.append(os.path.join(context.home.config, "tools"))
        if context.trust is not None and context.trust.trusted:
            folders.append(os.path.join(context.trust.root, PROJECT))
        return {path: stamp for folder in folders for path, stamp in list_files(folder)}

    async def _find_admitted(self, stamps: dict[str, Stamp]) -> list[str]:
        """Return the files, without those of the project that changed since they were trusted."""
        trust = self._context.trust
        root = f"{trust.root}{os.sep}" if trust else ""
        project = [path for path in stamps if root and path.startswith(root)]
        if trust is None or not project:
            return list(stamps)
        entries = [(Loadable("tools", path.removeprefix(root)), digest(path)) for path in project]
        admitted = await trust.admit(self._context.session, "tools", entries)
        refused = {path for path, may in zip(project, admitted, strict=True) if not may}
        return [path for path in stamps if path not in refused]

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
            # Not by the loader: its cache of compiled files has a resolution of one second.
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
        except (Exception, SystemExit) as error:  # code of other people may raise anything
            self._warn(f"{where} cannot be loaded ({type(error).__name__}: {error}); correct it.")
            return []

    def _add(self, found: dict[str, Tool], tool: "FunctionTool", where: str) -> None:
        name = tool.spec.name
        if name in NAMES:
            self._warn(f"The tool {name} of {where} has the name of a built-in tool; rename it.")
        else:
            tool.source = where
            found[name] = tool

    def _warn(self, message: str) -> None:
        self._context.session.emit(SessionWarning(warning_type="tool_file", message=message))


def list_files(folder: str) -> list[tuple[str, Stamp]]:
    """Return the Python files of a folder, with their stamps."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return []
    found: list[tuple[str, Stamp]] = []
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".py") and not name.startswith(("_", ".")) and os.path.isfile(path):
            info = os.stat(path)
            found.append((path, (info.st_ino, info.st_size, info.st_mtime_ns)))
    return found


def has_installed() -> bool:
    """Return True if any package has tools. `importlib.metadata` would take 20 ms for that."""
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
