"""A running language server: its process, its requests, the files it has open."""

import asyncio
import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from trimtab.contracts.language import LanguageProblem, LanguageServer
from trimtab.contracts.mcp import Launch, ServerProgram, StartProgram
from trimtab.lsp.frames import MAX_BYTES, Frames, encode
from trimtab.lsp.positions import path_to_uri, uri_to_path

START_SECONDS = 30.0
ANSWER_SECONDS = 20.0
MAX_OPEN_FILES = 64
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_DIAGNOSTICS = 200
CAPABILITIES: Mapping[str, Any] = {
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "workspaceEdit": {"documentChanges": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "definition": {"linkSupport": True},
        "rename": {"prepareSupport": True},
        "callHierarchy": {},
        "references": {},
        "diagnostic": {},
    },
    "general": {"positionEncodings": ["utf-16"]},
}


class OpenFile:
    """A file as the server knows it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.version = 1
        self.diagnosed = asyncio.Event()
        """Set when diagnostics of this version have arrived."""
        self.diagnostics: list[dict[str, Any]] = []
        self.outdated = False
        """True if another file has changed since: a server may send other diagnostics, or none."""

    def expect_news(self) -> None:
        """Wait for diagnostics again, since another file has changed."""
        self.outdated = True
        self.diagnosed.clear()


class RunningServer:
    """A started server. After `problem` is set it answers nothing more."""

    def __init__(
        self, server: LanguageServer, root: str, start: StartProgram, env: Mapping[str, str]
    ) -> None:
        self.server = server
        self.problem = ""
        self.capabilities: Mapping[str, Any] = {}
        self.files: dict[str, OpenFile] = {}
        self._root = root
        self._frames = Frames()
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        launch = Launch(
            argv=server.argv,
            cwd=root,
            env={**env, **server.env},
            on_output=self._receive,
            on_end=self._on_exit,
        )
        try:
            self._program: ServerProgram = start(launch)
        except (OSError, ValueError) as error:
            raise LanguageProblem(f"{server.argv[0]} could not be started: {error}.") from None

    async def initialize(self) -> None:
        """Greet the server. Raises `LanguageProblem`."""
        uri = path_to_uri(self._root)
        result = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": uri,
                "rootPath": self._root,
                "workspaceFolders": [{"uri": uri, "name": os.path.basename(self._root)}],
                "capabilities": CAPABILITIES,
                "initializationOptions": self.server.options,
            },
            START_SECONDS,
        )
        capabilities = result.get("capabilities") if isinstance(result, dict) else None
        if not isinstance(capabilities, dict):
            raise self._fail("it did not say what it can do")
        self.capabilities = capabilities
        self.notify("initialized", {})
        if self.server.settings:
            self.notify("workspace/didChangeConfiguration", {"settings": self.server.settings})

    async def request(self, method: str, params: Any, seconds: float = ANSWER_SECONDS) -> Any:
        """Return the result of a request. Raises `LanguageProblem`."""
        if self.problem:
            raise LanguageProblem(f"{self.server.name} is not running: {self.problem}.")
        number = next(self._ids)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            self.notify("$/cancelRequest", {"id": number})
            raise LanguageProblem(
                f"{self.server.name} did not answer within {seconds:.0f} s; use grep instead."
            ) from None
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def show_file(self, path: str, text: str) -> OpenFile:
        """Tell the server the text of a file, as it is now."""
        known = self.files.pop(path, None)
        if known is not None and known.text == text:
            self.files[path] = known
            return known
        uri = path_to_uri(path)
        file = OpenFile(text)
        if known is None:
            self._close_oldest()
            language = self.server.languages.get(os.path.splitext(path)[1], "plaintext")
            item = {"uri": uri, "languageId": language, "version": 1, "text": text}
            self.notify("textDocument/didOpen", {"textDocument": item})
        else:
            file.version = known.version + 1
            self.notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": uri, "version": file.version},
                    "contentChanges": [{"text": text}],
                },
            )
            self.notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": text})
        self.files[path] = file
        return file

    async def stop(self) -> None:
        """End the server: ask it, then its process and all processes that it started."""
        if not self.problem:
            self._send({"jsonrpc": "2.0", "id": next(self._ids), "method": "shutdown"})
            self._send({"jsonrpc": "2.0", "method": "exit"})
        self._end("it was stopped")
        await self._program.stop()

    def close_file(self, path: str) -> None:
        """Tell the server that a file is not shown any more: the disk has its text again."""
        del self.files[path]
        self.notify("textDocument/didClose", {"textDocument": {"uri": path_to_uri(path)}})

    def _close_oldest(self) -> None:
        while len(self.files) >= MAX_OPEN_FILES:
            self.close_file(next(iter(self.files)))

    def _send(self, message: dict[str, Any]) -> None:
        if self.problem:
            return
        self._program.write(encode(message))
        if self._program.unsent > 2 * MAX_BYTES:
            self._end("it does not read its input")

    def _receive(self, chunk: bytes) -> None:
        if self.problem:
            return
        try:
            for message in self._frames.feed(chunk):
                self._take(message)
        except ValueError as error:
            self._end(str(error))

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._resolve(number, message)
        elif number is not None:
            self._answer(str(method), number, message.get("params"))
        elif method == "textDocument/publishDiagnostics":
            self._take_diagnostics(message.get("params"))

    def _resolve(self, number: Any, message: dict[str, Any]) -> None:
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
            return
        text = error.get("message") if isinstance(error, dict) else error
        said = " ".join(str(text).split("\n    at ")[0].split())[:500]  # without a stack of calls
        future.set_exception(LanguageProblem(f"{self.server.name} says: {said.rstrip('.')}."))

    def _answer(self, method: str, number: Any, params: Any) -> None:
        """Answer a request of the server. It may ask for settings; it may not change files."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            wanted = items if isinstance(items, list) else []
            answer["result"] = [self._find_settings(item) for item in wanted]
        elif method == "workspace/applyEdit":
            answer["result"] = {"applied": False, "failureReason": "only the agent edits files"}
        elif method == "workspace/workspaceFolders":
            name = os.path.basename(self._root)
            answer["result"] = [{"uri": path_to_uri(self._root), "name": name}]
        elif method in ("client/registerCapability", "client/unregisterCapability") or (
            method.startswith("window/")
        ):
            answer["result"] = None
        else:
            answer["error"] = {"code": -32601, "message": f"{method} is not supported"}
        self._send(answer)

    def _find_settings(self, item: Any) -> Any:
        section = item.get("section") if isinstance(item, dict) else None
        found: Any = self.server.settings
        for name in str(section or "").split("."):
            if name:
                found = found.get(name) if isinstance(found, dict) else None
        return found if found is not None else {}

    def _take_diagnostics(self, params: Any) -> None:
        try:
            path = uri_to_path(params.get("uri") if isinstance(params, dict) else None)
        except LanguageProblem:
            return
        file = self.files.get(path)
        found = params.get("diagnostics")
        if file is None or not isinstance(found, list):
            return
        version = params.get("version")
        if isinstance(version, int) and version < file.version:
            return
        file.diagnostics = [item for item in found[:MAX_DIAGNOSTICS] if isinstance(item, dict)]
        file.diagnosed.set()

    def _on_exit(self) -> None:
        errors = self._program.errors.decode("utf-8", "replace").strip()
        self._end(f"it exited{': ' + errors[-400:] if errors else ''}")

    def _fail(self, problem: str) -> LanguageProblem:
        self._end(problem)
        return LanguageProblem(f"{self.server.name} cannot be used: {problem}.")

    def _end(self, problem: str) -> None:
        self.problem = self.problem or problem
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(
                    LanguageProblem(f"{self.server.name} cannot be used: {self.problem}.")
                )


Start = Callable[[LanguageServer], RunningServer]
