"""The language servers of a session: started when a question needs one, kept until it ends."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.language import FileEdit, LanguageProblem, LanguageQuery, LanguageServer
from trimtab.contracts.mcp import StartProgram
from trimtab.lsp import answers
from trimtab.lsp.edits import plan_edits, read_source
from trimtab.lsp.positions import line_starts, locate, path_to_uri
from trimtab.lsp.server import MAX_FILE_BYTES, OpenFile, RunningServer

MAX_SERVERS = 4
MAX_STARTS = 2
"""Times a server is started in a session; it is not used any more after that."""
DIAGNOSTICS_SECONDS = 6.0
FEEDBACK_SECONDS = 2.0
"""Seconds that an edit waits for the diagnostics of a server."""
SETTLE_SECONDS = 0.3
"""Seconds in which a server may replace the diagnostics it has just sent."""
Identity = tuple[str, str, str]
MAX_SEARCHED = 5000
"""Entries that are looked at to find a file for a server."""
SKIPPED = frozenset(("node_modules", "venv", "target", "dist", "build"))
METHODS = {
    "definition": "textDocument/definition",
    "references": "textDocument/references",
    "hover": "textDocument/hover",
}
ABILITIES = {
    "definition": "definitionProvider",
    "references": "referencesProvider",
    "hover": "hoverProvider",
    "symbols": "documentSymbolProvider",
    "callers": "callHierarchyProvider",
    "callees": "callHierarchyProvider",
    "rename": "renameProvider",
}


class SessionLanguages:
    """Answers questions about code with language servers. Implements `LanguagePort`."""

    def __init__(
        self,
        servers: Sequence[LanguageServer],
        root: str,
        start: StartProgram,
        env: Mapping[str, str],
        emit: Callable[[Any], object],
    ) -> None:
        self.planned: dict[str, Sequence[FileEdit]] = {}
        """The edits of a rename, by the id of the call that makes it."""
        self._servers = servers
        self._root = root
        self._start = start
        self._env = env
        self._emit = emit
        self._running: dict[str, asyncio.Task[RunningServer]] = {}
        self._starts: dict[str, int] = {}

    async def answer(self, query: LanguageQuery) -> str:
        if query.action == "symbols" and not query.path:
            return await self._search_symbols(query.symbol)
        server = await self._find_running(query.path)
        self._require(server, query.action)
        self._refresh(server)
        file = self._show(server, query.path)
        places = answers.Places(self._root, self._read_line)
        document = {"textDocument": {"uri": path_to_uri(query.path)}}
        if query.action == "symbols":
            found = await server.request("textDocument/documentSymbol", document)
            return answers.show_symbols(found, places)
        if query.action == "diagnostics":
            found = await self._diagnose(server, query.path, file, DIAGNOSTICS_SECONDS)
            if found is None:
                raise LanguageProblem(f"{server.server.name} has not looked at the file yet.")
            return answers.show_diagnostics(found, "No diagnostics.")
        position = {**document, "position": locate(file.text, query.line, query.symbol)}
        if query.action in ("callers", "callees"):
            return await self._find_calls(server, position, query.action, places)
        if query.action == "references":
            position["context"] = {"includeDeclaration": True}
        found = await server.request(METHODS[query.action], position)
        if query.action == "hover":
            return answers.show_hover(found)
        return answers.show_locations(found, places, f"No {query.action} found.")

    async def plan_rename(self, query: LanguageQuery) -> Sequence[FileEdit]:
        server = await self._find_running(query.path)
        self._require(server, "rename")
        self._refresh(server)
        file = self._show(server, query.path)
        found = await server.request(
            "textDocument/rename",
            {
                "textDocument": {"uri": path_to_uri(query.path)},
                "position": locate(file.text, query.line, query.symbol),
                "newName": query.new_name,
            },
        )
        return plan_edits(found, _load)

    async def note_before(self, path: str) -> None:
        """Let a running server look at a file before it is changed."""
        server = self._find_warm(path)
        if server is None or path in server.files:
            return
        try:
            file = self._show(server, path)
            await self._diagnose(server, path, file, FEEDBACK_SECONDS)
        except LanguageProblem:
            return

    async def find_new(self, paths: Sequence[str]) -> list[str]:
        """Return the errors and warnings that files have since they were last looked at.

        The servers are told of all files first: one that has changed alone would be wrong. Without
        a running server, or if it takes too long, there are none.
        """
        shown: list[tuple[str, RunningServer, list[Identity]]] = []
        for path in paths:
            server = self._find_warm(path)
            if server is None:
                continue
            known = server.files.get(path)
            shown.append(
                (path, server, [_identify(item) for item in known.diagnostics] if known else [])
            )
        for _, server, _ in shown:
            self._refresh(server)
        fresh = []
        for path, server, before in shown:
            found = await self._find_fresh(server, path, before)
            fresh += [f"{path}:{row}" for row in found]
        return fresh

    async def _find_fresh(
        self, server: RunningServer, path: str, before: list[Identity]
    ) -> list[str]:
        try:
            file = self._show(server, path)
            found = await self._diagnose(server, path, file, FEEDBACK_SECONDS)
        except LanguageProblem:
            return []
        fresh = []
        for item in found or ():
            if item.get("severity", 1) > 2:
                continue
            identity = _identify(item)
            if identity in before:
                before.remove(identity)
            else:
                fresh.append(answers.describe_diagnostic(item))
        return fresh

    async def aclose(self) -> None:
        running, self._running = list(self._running.values()), {}
        for task in running:
            task.cancel()
        for task in running:
            try:
                server = await task
            except (asyncio.CancelledError, LanguageProblem):
                continue
            await server.stop()

    async def _find_running(self, path: str) -> RunningServer:
        suffix = os.path.splitext(path)[1]
        server = next((each for each in self._servers if suffix in each.languages), None)
        if server is None:
            raise LanguageProblem(
                f"there is no language server for {suffix or 'such'} files; use grep."
            )
        return await self._run(server)

    async def _run(self, server: LanguageServer) -> RunningServer:
        task = self._running.get(server.name)
        if task is not None and task.done() and _has_failed(task):
            del self._running[server.name]
            await self._forget(server, task)
            task = None
        if task is None:
            if self._starts.get(server.name, 0) >= MAX_STARTS:
                raise LanguageProblem(f"{server.name} does not work here; use grep instead.")
            if len(self._running) >= MAX_SERVERS:
                raise LanguageProblem(f"{MAX_SERVERS} language servers run already; use grep.")
            self._starts[server.name] = self._starts.get(server.name, 0) + 1
            task = asyncio.create_task(self._launch(server))
            self._running[server.name] = task
        return await asyncio.shield(task)

    async def _launch(self, server: LanguageServer) -> RunningServer:
        running: RunningServer | None = None
        try:
            running = RunningServer(server, self._root, self._start, self._env)
            await running.initialize()
        except BaseException as error:
            if running is not None:
                await running.stop()
            if isinstance(error, LanguageProblem):
                message = f"The language server {error}"
                if not str(error).startswith(server.name):
                    message = f"The language server {server.name} cannot be used: {error}"
                self._emit(SessionWarning(warning_type="language_server_failed", message=message))
            raise
        message = f"The language server {server.name} runs ({server.source})."
        self._emit(SessionInfo(info_type="language_server_started", message=message))
        return running

    async def _forget(self, server: LanguageServer, task: "asyncio.Task[RunningServer]") -> None:
        if task.cancelled() or task.exception() is not None:
            return
        running = task.result()
        message = f"The language server {server.name} ended: {running.problem}."
        self._emit(SessionWarning(warning_type="language_server_failed", message=message))
        await running.stop()

    def _find_warm(self, path: str) -> RunningServer | None:
        suffix = os.path.splitext(path)[1]
        for task in self._running.values():
            if task.done() and not _has_failed(task) and suffix in task.result().server.languages:
                return task.result()
        return None

    def _require(self, server: RunningServer, action: str) -> None:
        ability = ABILITIES.get(action)
        if ability is not None and not server.capabilities.get(ability):
            raise LanguageProblem(f"{server.server.name} has no {action}; use grep instead.")

    def _refresh(self, server: RunningServer) -> None:
        """Tell a server of the files it was shown and that have changed on the disk since."""
        before = dict(server.files)
        for path in before:
            try:
                self._show(server, path)
            except LanguageProblem:
                server.close_file(path)
        same = [file for path, file in before.items() if server.files.get(path) is file]
        for file in same if len(same) < len(before) else ():
            file.expect_news()

    def _show(self, server: RunningServer, path: str) -> OpenFile:
        """Tell a server the text of a file as it is on the disk."""
        try:
            data = _load(path)
        except OSError as error:
            raise LanguageProblem(f"{path} cannot be read: {error.strerror}.") from None
        return server.show_file(path, read_source(path, data))

    async def _diagnose(
        self, server: RunningServer, path: str, file: OpenFile, seconds: float
    ) -> list[dict[str, Any]] | None:
        """Return the diagnostics of a file; None if they do not come in time."""
        if server.capabilities.get("diagnosticProvider"):
            params = {"textDocument": {"uri": path_to_uri(path)}}
            found = await server.request("textDocument/diagnostic", params, seconds)
            items = found.get("items") if isinstance(found, dict) else None
            if isinstance(items, list):
                file.diagnostics = [item for item in items if isinstance(item, dict)]
            return file.diagnostics
        if not file.diagnosed.is_set():
            try:
                async with asyncio.timeout(FEEDBACK_SECONDS if file.outdated else seconds):
                    await file.diagnosed.wait()
            except TimeoutError:
                if not file.outdated:
                    return None
                file.diagnosed.set()  # the change made no difference to this file
            await asyncio.sleep(SETTLE_SECONDS)
        return file.diagnostics

    async def _search_symbols(self, text: str) -> str:
        """Ask all servers, since a symbol may be in any of the languages."""
        places, found, problems = answers.Places(self._root, self._read_line), [], []
        for each in self._servers[:MAX_SERVERS]:
            try:
                server = await self._run(each)
                self._refresh(server)
                await self._open_project(server)
                symbols = await server.request("workspace/symbol", {"query": text})
            except LanguageProblem as problem:
                problems.append(str(problem))
                continue
            found += symbols if isinstance(symbols, list) else []
        if problems and not found:
            raise LanguageProblem("; ".join(problems))
        return "\n".join((answers.show_symbols(found, places), *problems))

    async def _open_project(self, server: RunningServer) -> None:
        """Show a server one of its files if it knows none: some have no project before that."""
        path = None if server.files else find_file(self._root, server.server.languages)
        if path is not None:
            file = self._show(server, path)
            await self._diagnose(server, path, file, DIAGNOSTICS_SECONDS)

    async def _find_calls(
        self, server: RunningServer, position: Any, action: str, places: answers.Places
    ) -> str:
        items = await server.request("textDocument/prepareCallHierarchy", position)
        if not isinstance(items, list) or not items:
            return "No function stands there."
        way, end = ("incomingCalls", "from") if action == "callers" else ("outgoingCalls", "to")
        found = await server.request(f"callHierarchy/{way}", {"item": items[0]})
        return answers.show_calls(found, places, end)

    def _read_line(self, path: str, line: int) -> str:
        """Return a line of a file below the root."""
        if not os.path.realpath(path).startswith(os.path.realpath(self._root) + os.sep):
            return ""
        try:
            text = _load(path).decode("utf-8", "replace")
        except OSError:
            return ""
        starts = line_starts(text)
        if line >= len(starts):
            return ""
        return text[starts[line] :].split("\n", 1)[0]


def find_file(root: str, suffixes: Collection[str]) -> str | None:
    """Return a file with one of the suffixes; hidden folders and packages are left out."""
    left = MAX_SEARCHED
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in SKIPPED)
        for name in sorted(names):
            if os.path.splitext(name)[1] in suffixes:
                return os.path.join(folder, name)
        left -= len(names) + len(folders)
        if left < 0:
            break
    return None


def _load(path: str) -> bytes:
    """Return the contents of a regular file that is not too large. Raises `OSError`."""
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "no such file", path)
    if os.path.getsize(path) > MAX_FILE_BYTES:
        raise OSError(27, "the file is too large", path)
    with open(path, "rb") as file:
        return file.read()


def _has_failed(task: "asyncio.Task[RunningServer]") -> bool:
    return task.cancelled() or task.exception() is not None or bool(task.result().problem)


def _identify(item: dict[str, Any]) -> Identity:
    """Return what stays the same about a diagnostic when lines move."""
    return (str(item.get("severity")), str(item.get("code")), str(item.get("message")))
