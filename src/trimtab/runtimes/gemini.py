"""Gemini CLI as a runtime. It cannot speak to the bridge, so it uses its own models only."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Usage
from trimtab.runtimes.contract import (
    AgentRuntime,
    CallBegan,
    CallEnded,
    CallMade,
    Capabilities,
    Ended,
    Item,
    Job,
    ModelNamed,
    Piece,
    Remark,
    RenamedTool,
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    count_of,
    object_of,
    text_of,
)

_PATH = {"file_path": "path"}


class Gemini(AgentRuntime):
    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    capabilities = Capabilities(streaming=True, session_resume=True, token_tracking=True)
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    state = (".gemini",)
    tools: ClassVar[Mapping[str, RenamedTool]] = {
        "run_shell_command": RenamedTool("bash"),
        "read_file": RenamedTool("view", {**_PATH, "absolute_path": "path"}),
        "write_file": RenamedTool("create", {**_PATH, "content": "file_text"}),
        "replace": RenamedTool("edit", {**_PATH, "old_string": "old_str", "new_string": "new_str"}),
        "search_file_content": RenamedTool("grep"),
        "grep_search": RenamedTool("grep"),
        "list_directory": RenamedTool("view", {"dir_path": "path"}),
        "web_fetch": RenamedTool("web_fetch"),
        "google_web_search": RenamedTool("web_search"),
    }

    def arguments(self, job: Job) -> list[str]:
        args = ["--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust"]
        if job.model:
            args += ["--model", job.model]
        if job.resume:
            args += ["--resume", job.resume]
        if job.folders:
            args += ["--include-directories", ",".join(job.folders)]
        return args

    def reader(self) -> "GeminiReader":
        return GeminiReader()


class GeminiReader:
    """Puts the pieces of messages together: no line has a whole one."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._in_turn = False
        self._failure = ""

    def read(self, event: JsonObject) -> Iterator[Item]:
        match event.get("type"):
            case "init":
                if session := text_of(event.get("session_id")):
                    yield SessionOpened(session)
                if model := text_of(event.get("model")):
                    yield ModelNamed(model)
            case "message" if event.get("role") == "assistant":
                yield from self._begin()
                text = text_of(event.get("content"))
                self._text.append(text)
                yield Piece(text)
            case "tool_use":
                yield from self._begin()
                call = CallMade(
                    id=text_of(event.get("tool_id")),
                    name=text_of(event.get("tool_name")),
                    args=object_of(event.get("parameters")),
                )
                yield from self._flush(call)
                yield CallBegan(call=call)
            case "tool_result":
                yield from self._flush()
                self._in_turn = False
                failed = event.get("status") != "success"
                error = text_of(object_of(event.get("error")).get("message"))
                text = text_of(event.get("output"))
                yield CallEnded(
                    id=text_of(event.get("tool_id")),
                    text=(error or text) if failed else text,
                    failed=failed,
                )
            case "error" if message := text_of(event.get("message")):
                if event.get("severity") == "error":
                    self._failure = message
                yield Remark("runtime_error", message)
            case "result":
                yield from self._end(event)

    def finish(self) -> Iterator[Item]:
        yield from self._flush()

    def _begin(self) -> Iterator[Item]:
        if not self._in_turn:
            self._in_turn = True
            yield TurnBegan()

    def _flush(self, *calls: CallMade) -> Iterator[Item]:
        text = "".join(self._text)
        self._text = []
        if text or calls:
            yield Said(text=text, calls=calls)

    def _end(self, event: JsonObject) -> Iterator[Item]:
        yield from self._flush()
        stats = object_of(event.get("stats"))
        yield Spent(
            usage=Usage(
                input_tokens=count_of(stats.get("input_tokens")),
                output_tokens=count_of(stats.get("output_tokens")),
                cache_read_tokens=count_of(stats.get("cached")),
            )
        )
        error = ""
        if event.get("status") != "success":
            error = text_of(object_of(event.get("error")).get("message")) or self._failure
            error = error or "it failed without a reason"
        yield Ended(error=error, duration_ms=count_of(stats.get("duration_ms")))
