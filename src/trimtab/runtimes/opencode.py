"""opencode as a runtime. It reports finished tool calls, and never its call for a title."""

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
    RenamedTool,
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    add_up,
    amount_of,
    count_of,
    object_of,
    text_of,
)

_PATH = {"filePath": "path"}


class Opencode(AgentRuntime):
    name = "opencode"
    title = "opencode"
    program = "opencode"
    install = "npm install -g opencode-ai"
    capabilities = Capabilities(
        model_discovery=True,
        session_resume=True,
        effort_levels=True,
        token_tracking=True,
        cost_tracking=True,
        host_models=True,
    )
    keys = (
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        *("GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY"),
    )
    state = (
        ".config/opencode",
        ".local/share/opencode",
        ".local/state/opencode",
        ".cache/opencode",
    )
    list_arguments = ("models",)
    tools: ClassVar[Mapping[str, RenamedTool]] = {
        "read": RenamedTool("view", _PATH),
        "write": RenamedTool("create", {**_PATH, "content": "file_text"}),
        "edit": RenamedTool("edit", {**_PATH, "oldString": "old_str", "newString": "new_str"}),
        "patch": RenamedTool("apply_patch"),
        "webfetch": RenamedTool("web_fetch"),
    }

    def arguments(self, job: Job) -> list[str]:
        args = ["run", "--format", "json", "--auto"]
        if job.model and job.endpoint is None:
            args += ["--model", job.model]
        if job.effort:
            args += ["--variant", job.effort]
        return [*args, *(["--session", job.resume] if job.resume else [])]

    def reader(self) -> "OpencodeReader":
        return OpencodeReader()


class OpencodeReader:
    """Reads steps: each is a model call, its text and its finished tool calls."""

    def __init__(self) -> None:
        self._session = ""
        self._failure: Ended | None = None
        self._steps = 0
        self._finished = False
        self._cost: float | None = None

    def read(self, event: JsonObject) -> Iterator[Item]:
        session, part = text_of(event.get("sessionID")), object_of(event.get("part"))
        if session and session != self._session:
            self._session = session
            yield SessionOpened(session)
        match event.get("type"):
            case "step_start":
                self._steps += 1
                self._finished = False
                yield TurnBegan()
            case "text":
                yield Said(text=text_of(part.get("text")))
            case "reasoning":
                yield Said(reasoning=text_of(part.get("text")))
            case "tool_use":
                yield from self._call(part)
            case "step_finish":
                self._finished = part.get("reason") != "tool-calls"
                cost = amount_of(part.get("cost"))
                if cost is not None:
                    self._cost = (self._cost or 0.0) + cost
                yield Spent(usage=read_usage(object_of(part.get("tokens"))), cost_usd=cost)
            case "error":
                error = object_of(event.get("error"))
                data = object_of(error.get("data"))
                message = text_of(data.get("message")) or text_of(error.get("name"))
                self._failure = Ended(
                    error=message or "it failed without a reason",
                    status=count_of(data.get("statusCode")),
                )

    def finish(self) -> Iterator[Item]:
        """Report the result, for which the program prints no line."""
        if self._failure is not None:
            yield self._failure
        elif self._finished:
            yield Ended(turns=self._steps, cost_usd=self._cost)

    def _call(self, part: JsonObject) -> Iterator[Item]:
        state = object_of(part.get("state"))
        call = CallMade(
            id=text_of(part.get("callID")) or text_of(part.get("id")),
            name=text_of(part.get("tool")),
            args=object_of(state.get("input")),
        )
        yield Said(calls=(call,))
        yield CallBegan(call=call)
        failed = state.get("status") != "completed"
        yield CallEnded(
            id=call.id,
            text=text_of(state.get("error")) if failed else text_of(state.get("output")),
            failed=failed,
            exit_code=count_of(object_of(state.get("metadata")).get("exit")),
        )


def read_usage(tokens: JsonObject) -> Usage:
    """Return the tokens of a step; cached ones are counted apart."""
    cache = object_of(tokens.get("cache"))
    read, written = count_of(cache.get("read")), count_of(cache.get("write"))
    reasoning = count_of(tokens.get("reasoning"))
    return Usage(
        input_tokens=add_up(count_of(tokens.get("input")), read, written),
        output_tokens=add_up(count_of(tokens.get("output")), reasoning),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )
