"""Codex as a runtime. It cannot ask anybody, and reports its tokens only at the end."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from trimtab.bridge.run import codex_flags
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
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
    Remark,
    RenamedTool,
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    count_of,
    join_text,
    list_of,
    nothing,
    object_of,
    text_of,
)

_SHELL = re.compile(r"^(?:/\S*/)?(?:bash|zsh|sh) -l?c (.*)$", re.DOTALL)


class Codex(AgentRuntime):
    name = "codex"
    title = "Codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    capabilities = Capabilities(
        session_resume=True,
        effort_levels=True,
        token_tracking=True,
        session_persistence_control=True,
        host_models=True,
    )
    keys = ("OPENAI_API_KEY",)
    state = (".codex",)
    tools: ClassVar[Mapping[str, RenamedTool]] = {
        "command_execution": RenamedTool("bash"),
        "file_change": RenamedTool("apply_patch"),
        "web_search": RenamedTool("web_search"),
    }

    def arguments(self, job: Job) -> list[str]:
        args = ["exec"]
        if job.endpoint is not None:
            args += codex_flags(job.endpoint.url)
        if job.effort:
            args += ["-c", f"model_reasoning_effort={job.effort}"]
        if not job.resume:
            for folder in job.folders:
                args += ["--add-dir", folder]
        args += ["resume"] if job.resume else []
        args += ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        if job.model and job.endpoint is None:
            args += ["--model", job.model]
        return [*args, *([job.resume] if job.resume else []), "-"]

    def reader(self) -> "CodexReader":
        return CodexReader()


class CodexReader:
    """Reads items, which begin and complete; a turn is the run up to the final message."""

    def __init__(self) -> None:
        self._run = new_id()[:8]
        """Makes ids unique: items are numbered anew in each run."""
        self._began: set[str] = set()
        self._failure = ""
        self._in_turn = False

    def read(self, event: JsonObject) -> Iterator[Item]:
        match event.get("type"):
            case "thread.started" if session := text_of(event.get("thread_id")):
                yield SessionOpened(session)
            case "item.started":
                yield from self._begin(object_of(event.get("item")))
            case "item.completed":
                yield from self._complete(object_of(event.get("item")))
            case "error" if message := text_of(event.get("message")):
                self._failure = message
                yield Remark("runtime_error", message)
            case "turn.completed":
                usage = object_of(event.get("usage"))
                yield Spent(usage=read_usage(usage))
                yield Ended()
            case "turn.failed":
                message = text_of(object_of(event.get("error")).get("message"))
                yield Ended(error=message or self._failure or "it failed without a reason")

    def finish(self) -> Iterator[Item]:
        return nothing()

    def _call(self, item: JsonObject) -> CallMade | None:
        call = read_call(item)
        return msgspec.structs.replace(call, id=f"{call.id}-{self._run}") if call else None

    def _turn(self) -> Iterator[Item]:
        """Say that a model call began, if the last thing that happened was a result."""
        if not self._in_turn:
            self._in_turn = True
            yield TurnBegan()

    def _begin(self, item: JsonObject) -> Iterator[Item]:
        call = self._call(item)
        if call is None or call.id in self._began:
            return
        self._began.add(call.id)
        yield from self._turn()
        yield Said(calls=(call,))
        yield CallBegan(call=call)

    def _complete(self, item: JsonObject) -> Iterator[Item]:
        match item.get("type"):
            case "agent_message":
                yield from self._turn()
                yield Said(text=text_of(item.get("text")))
            case "reasoning":
                yield from self._turn()
                yield Said(reasoning=text_of(item.get("text")))
            case "error":
                yield Remark("runtime_error", text_of(item.get("message")))
            case _ if (call := self._call(item)) is not None:
                yield from self._begin(item)
                failed = item.get("status") in ("failed", "declined")
                yield CallEnded(
                    id=call.id,
                    text=read_result(item),
                    failed=failed,
                    exit_code=count_of(item.get("exit_code")),
                )
                self._in_turn = False


def read_call(item: JsonObject) -> CallMade | None:
    """Return the tool call of an item; None for messages."""
    kind, item_id = text_of(item.get("type")), text_of(item.get("id"))
    match kind:
        case "command_execution":
            command = text_of(item.get("command"))
            args: JsonObject = {"command": unwrap(command)}
        case "file_change":
            args = {"changes": list_of(item.get("changes"))}
        case "mcp_tool_call":
            server, tool = text_of(item.get("server")), text_of(item.get("tool"))
            args, kind = object_of(item.get("arguments")), f"{server}-{tool}"
        case "web_search":
            args = {"query": text_of(item.get("query"))}
        case _:
            return None
    return CallMade(id=item_id, name=kind, args=args)


def unwrap(command: str) -> str:
    """Return the command that is the argument of `bash -lc`, without its quotes."""
    found = _SHELL.match(command)
    if found is None:
        return command
    try:
        words = shlex.split(found[1])
    except ValueError:
        return command
    return words[0] if len(words) == 1 else command


def read_result(item: JsonObject) -> str:
    match item.get("type"):
        case "command_execution":
            return text_of(item.get("aggregated_output"))
        case "file_change":
            changes = list_of(item.get("changes"))
            lines = [f"{text_of(c.get('kind'))} {text_of(c.get('path'))}" for c in changes]
            return "\n".join(lines)
        case "mcp_tool_call":
            error = object_of(item.get("error"))
            return text_of(error.get("message")) or join_text(
                object_of(item.get("result")).get("content")
            )
    return ""


def read_usage(usage: JsonObject) -> Usage:
    """Return the tokens of a run; cached ones are among the input."""
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=count_of(usage.get("cached_input_tokens")),
        cache_write_tokens=count_of(usage.get("cache_write_input_tokens")),
        reasoning_tokens=count_of(usage.get("reasoning_output_tokens")),
    )
