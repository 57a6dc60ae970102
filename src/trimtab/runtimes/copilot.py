"""GitHub Copilot CLI as a runtime. Its events have our names; it reports only its output tokens."""

from collections.abc import Iterator, Mapping

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Usage
from trimtab.providers.copilot import Copilot, find_token
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
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    amount_of,
    count_of,
    effort_without_max,
    list_of,
    nothing,
    object_of,
    text_of,
)

_ALWAYS = (
    *("--output-format", "json", "-s", "--allow-all", "--no-ask-user", "--autopilot"),
    *("--log-level", "error"),
)
_PARTIAL = frozenset(
    (
        *("assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta"),
        *("tool.execution_partial_result", "tool.shell_output"),
    )
)


class CopilotCli(AgentRuntime):
    name = "copilot"
    title = "Copilot CLI"
    program = "copilot"
    install = "npm install -g @github/copilot"
    capabilities = Capabilities(
        model_discovery=True,
        streaming=True,
        session_resume=True,
        effort_levels=True,
        host_models=True,
    )
    keys = (
        *("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"),
        "COPILOT_PROVIDER_BEARER_TOKEN",
    )
    state = (".copilot", ".cache/copilot")
    fallback = ("gh", "copilot")
    caution = (
        "Its built-in MCP servers are off. With the setting runtimes.copilot.disableBuiltinMcps "
        "false, GitHub's server lets it open pull requests and change issues outside of this log, "
        "where nothing can be undone."
    )
    needed_flags = ("--output-format", "--allow-all", "--no-ask-user", "--autopilot")

    def arguments(self, job: Job) -> list[str]:
        """Return the flags that are always given, and the others only if they are asked for."""
        args, settings = [*_ALWAYS], job.settings
        if job.model and job.endpoint is None:
            args += ["--model", job.model]
        if effort := effort_without_max(job.effort):
            args += ["--effort", effort]
        if job.resume:
            args.append(f"--resume={job.resume}")
        if settings.stream_mode:
            args += ["--stream", settings.stream_mode]
        if job.max_continues is not None:
            args += ["--max-autopilot-continues", str(job.max_continues)]
        if settings.reasoning_summaries:
            args.append("--enable-reasoning-summaries")
        if settings.suppress_instructions:
            args.append("--no-custom-instructions")
        if settings.disable_builtin_mcps:
            args.append("--disable-builtin-mcps")
        for folder in job.folders:
            args += ["--add-dir", folder]
        return args

    def environment(self, job: Job) -> Mapping[str, str]:
        return {"COPILOT_OFFLINE": "true"} if job.endpoint else {}

    def reader(self) -> "CopilotReader":
        return CopilotReader()

    async def fetch_models(self, env: Mapping[str, str]) -> list[str] | None:
        if (key := find_token(env)) is None:
            return None
        service = Copilot(key, env)
        try:
            return await service.list_models()
        except TrimtabError:
            return None
        finally:
            await service.aclose()

    def is_partial(self, event: JsonObject) -> bool:
        return text_of(event.get("type")) in _PARTIAL


class CopilotReader:
    """Reads the known events and ignores the rest; no optional field is taken for granted."""

    def __init__(self) -> None:
        self._failure = ""
        self._status: int | None = None
        self._turns = 0

    def read(self, event: JsonObject) -> Iterator[Item]:
        data = object_of(event.get("data"))
        parent = text_of(data.get("parentToolCallId"))
        match event.get("type"):
            case "assistant.turn_start" if not parent:
                yield TurnBegan()
            case "assistant.turn_end":
                self._turns += 1
            case "assistant.message":
                yield from self._message(data, parent)
            case "tool.execution_start":
                yield CallBegan(call=read_call(data, "toolName"), parent=parent)
            case "tool.execution_complete":
                yield read_result(data)
            case "session.error":
                self._failure = text_of(data.get("message")) or "it failed without a reason"
                self._status = count_of(data.get("statusCode"))
            case "result":
                yield from self._end(event)
            case kind:
                yield from read_small(text_of(kind), data)

    def finish(self) -> Iterator[Item]:
        return nothing()

    def _message(self, data: JsonObject, parent: str) -> Iterator[Item]:
        calls = tuple(read_call(request, "name") for request in list_of(data.get("toolRequests")))
        yield Said(
            text=text_of(data.get("content")),
            reasoning=text_of(data.get("reasoningText")),
            calls=calls,
            parent=parent,
        )
        yield Spent(
            usage=Usage(output_tokens=count_of(data.get("outputTokens"))),
            model=text_of(data.get("model")) or None,
        )

    def _end(self, event: JsonObject) -> Iterator[Item]:
        usage, code = object_of(event.get("usage")), event.get("exitCode")
        if session := text_of(event.get("sessionId")):
            yield SessionOpened(session)
        error = "" if code == 0 else self._failure or f"it exited with {code}"
        yield Ended(
            error=error,
            status=self._status,
            turns=self._turns,
            duration_ms=count_of(usage.get("totalApiDurationMs")),
            premium_requests=amount_of(usage.get("premiumRequests")),
        )


def read_small(kind: str, data: JsonObject) -> Iterator[Item]:
    """Read the events that only carry a text."""
    piece = text_of(data.get("deltaContent"))
    match kind:
        case "session.tools_updated" if model := text_of(data.get("model")):
            yield ModelNamed(model)
        case "assistant.message_delta" if piece:
            yield Piece(piece)
        case "assistant.reasoning_delta" if piece:
            yield Piece(piece, is_reasoning=True)
        case "session.warning" | "session.autopilot_stopped":
            reason = text_of(data.get("message")) or text_of(data.get("reason"))
            yield Remark("runtime_warning", reason)


def read_call(data: JsonObject, name: str) -> CallMade:
    return CallMade(
        id=text_of(data.get("toolCallId")),
        name=text_of(data.get(name)),
        args=object_of(data.get("arguments")),
    )


def read_result(data: JsonObject) -> CallEnded:
    failed = data.get("success") is not True
    result = object_of(data.get("error" if failed else "result"))
    return CallEnded(
        id=text_of(data.get("toolCallId")),
        text=text_of(result.get("message" if failed else "content")),
        failed=failed,
        exit_code=count_of(object_of(data.get("shellExecution")).get("exitCode")),
    )
