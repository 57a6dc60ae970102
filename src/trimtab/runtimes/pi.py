"""pi as a runtime. It exits with 0 even if it failed; its last message tells."""

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
    RenamedTool,
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    add_up,
    amount_of,
    count_of,
    effort_without_max,
    join_text,
    list_of,
    object_of,
    text_of,
)


class Pi(AgentRuntime):
    name = "pi"
    title = "pi"
    program = "pi"
    install = "npm install -g @mariozechner/pi-coding-agent"
    capabilities = Capabilities(
        model_discovery=True,
        streaming=True,
        session_resume=True,
        system_prompt_file=True,
        effort_levels=True,
        token_tracking=True,
        cost_tracking=True,
        session_persistence_control=True,
        host_models=True,
    )
    keys = (
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        *("GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY", "ZAI_API_KEY"),
    )
    state = (".pi",)
    list_arguments = ("--list-models",)
    tools: ClassVar[Mapping[str, RenamedTool]] = {
        "read": RenamedTool("view"),
        "write": RenamedTool("create", {"content": "file_text"}),
        "edit": RenamedTool("edit", {"oldText": "old_str", "newText": "new_str"}),
        "find": RenamedTool("glob"),
        "ls": RenamedTool("view"),
    }

    def arguments(self, job: Job) -> list[str]:
        args = ["-p", "--mode", "json"]
        if job.model and job.endpoint is None:
            args += ["--model", job.model]
        if effort := effort_without_max(job.effort):
            args += ["--thinking", "off" if effort == "none" else effort]
        if job.system:
            args += ["--append-system-prompt", job.system]
        return [*args, *(["--session", job.resume] if job.resume else [])]

    def input(self, job: Job) -> bytes:
        return job.prompt.encode("utf-8", "replace")

    def reader(self) -> "PiReader":
        return PiReader()

    def is_partial(self, event: JsonObject) -> bool:
        return event.get("type") in ("message_update", "tool_execution_update", "agent_end")


class PiReader:
    """Reads whole messages at their end; the last one decides about success."""

    def __init__(self) -> None:
        self._model = ""
        self._last: Ended | None = None
        self._cost: float | None = None
        self._turns = 0
        self._complete = False

    def read(self, event: JsonObject) -> Iterator[Item]:
        match event.get("type"):
            case "session" if session := text_of(event.get("id")):
                yield SessionOpened(session)
            case "turn_start":
                self._turns += 1
                yield TurnBegan()
            case "message_update":
                yield from self._piece(object_of(event.get("assistantMessageEvent")))
            case "message_end":
                yield from self._message(object_of(event.get("message")))
            case "tool_execution_start":
                yield CallBegan(call=read_call(event, "toolCallId", "toolName", "args"))
            case "tool_execution_end":
                yield CallEnded(
                    id=text_of(event.get("toolCallId")),
                    text=join_text(object_of(event.get("result")).get("content")),
                    failed=event.get("isError") is True,
                )
            case "agent_end":
                self._complete = True
            case "agent_start":
                self._complete = False

    def finish(self) -> Iterator[Item]:
        """Report the result once no retry is pending."""
        if self._last is not None and (self._complete or self._last.error):
            yield self._last

    def _piece(self, event: JsonObject) -> Iterator[Item]:
        delta = text_of(event.get("delta"))
        if delta and event.get("type") in ("text_delta", "thinking_delta"):
            yield Piece(delta, is_reasoning=event.get("type") == "thinking_delta")

    def _message(self, message: JsonObject) -> Iterator[Item]:
        if message.get("role") != "assistant":
            return
        model = text_of(message.get("model"))
        if model and model != self._model:
            self._model = model
            yield ModelNamed(model)
        parts = list_of(message.get("content"))
        calls = [part for part in parts if part.get("type") == "toolCall"]
        thoughts = [text_of(part.get("thinking")) for part in parts]
        said = Said(
            text="\n".join(text_of(p.get("text")) for p in parts if p.get("type") == "text"),
            reasoning="\n".join(filter(None, thoughts)),
            calls=tuple(read_call(call, "id", "name", "arguments") for call in calls),
        )
        if said.text or said.reasoning or said.calls:
            yield said
        usage = object_of(message.get("usage"))
        cost = amount_of(object_of(usage.get("cost")).get("total"))
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        error = ""
        if (reason := message.get("stopReason")) in ("error", "aborted"):
            error = text_of(message.get("errorMessage")) or f"it stopped: {reason}"
        else:
            yield Spent(usage=read_usage(usage), model=model or None, cost_usd=cost)
        status = error[:3] if error[:3].isdigit() else ""
        self._last = Ended(
            error=error,
            status=int(status) if status else None,
            turns=self._turns,
            cost_usd=self._cost,
        )


def read_call(value: JsonObject, call_id: str, name: str, args: str) -> CallMade:
    return CallMade(
        id=text_of(value.get(call_id)),
        name=text_of(value.get(name)),
        args=object_of(value.get(args)),
    )


def read_usage(usage: JsonObject) -> Usage:
    """Return the tokens of a message; cached ones are counted apart."""
    read, written = count_of(usage.get("cacheRead")), count_of(usage.get("cacheWrite"))
    return Usage(
        input_tokens=add_up(count_of(usage.get("input")), read, written),
        output_tokens=count_of(usage.get("output")),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
