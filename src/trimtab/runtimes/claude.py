"""Claude Code as a runtime. It asks before each tool call, over its control protocol."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.provider import Usage
from trimtab.runtimes.contract import (
    AgentRuntime,
    Asked,
    CallBegan,
    CallEnded,
    CallMade,
    Capabilities,
    Ended,
    Item,
    Job,
    ModelNamed,
    Permit,
    Piece,
    RenamedTool,
    Said,
    SessionOpened,
    Spent,
    TurnBegan,
    add_up,
    amount_of,
    count_of,
    join_text,
    list_of,
    object_of,
    text_of,
)

_HOOK = "trimtab"
_HOOK_SECONDS = 86_400
"""A person may take their time to answer."""
_PATH = {"file_path": "path"}


class Claude(AgentRuntime):
    name = "claude"
    title = "Claude Code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    capabilities = Capabilities(
        streaming=True,
        session_resume=True,
        system_prompt_file=True,
        effort_levels=True,
        token_tracking=True,
        cost_tracking=True,
        model_shorthands=True,
        budget_cap=True,
        bare_mode=True,
        fallback_model=True,
        session_persistence_control=True,
        asks_permission=True,
        host_models=True,
        images=True,
    )
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    state = (".claude",)
    state_files = (".claude.json",)
    tools: ClassVar[Mapping[str, RenamedTool]] = {
        "Bash": RenamedTool("bash"),
        "Read": RenamedTool("view", _PATH),
        "Write": RenamedTool("create", {**_PATH, "content": "file_text"}),
        "Edit": RenamedTool("edit", {**_PATH, "old_string": "old_str", "new_string": "new_str"}),
        "NotebookEdit": RenamedTool(
            "notebook",
            {
                "notebook_path": "path",
                "new_source": "source",
                "edit_mode": "action",
                "cell_id": "cell",
            },
        ),
        "Grep": RenamedTool("grep"),
        "Glob": RenamedTool("glob", {"path": "paths"}),
        "WebFetch": RenamedTool("web_fetch"),
        "Task": RenamedTool("task", {"subagent_type": "agent_type"}),
    }
    harmless = frozenset(
        (
            *("Task", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"),
            *("TaskOutput", "TaskStop", "BashOutput", "KillShell", "Skill", "ReportFindings"),
            *("EnterPlanMode", "ExitPlanMode", "ToolSearch"),
        )
    )

    def arguments(self, job: Job) -> list[str]:
        args = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
        args += ["--input-format", "stream-json", "--permission-prompt-tool", "stdio"]
        # Nobody could answer its own questions to the person.
        args += ["--disallowedTools", "AskUserQuestion"]
        if job.model and job.endpoint is None:
            args += ["--model", job.model]
        if job.effort:
            args += ["--effort", job.effort]
        if job.resume:
            args += ["--resume", job.resume]
        if job.system:
            args += ["--append-system-prompt", job.system]
        for folder in job.folders:
            args += ["--add-dir", folder]
        return args

    def environment(self, job: Job) -> Mapping[str, str]:
        # Titles and reports are calls that nobody asked for.
        return {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"} if job.endpoint else {}

    def input(self, job: Job) -> bytes:
        hooks = [{"matcher": None, "hookCallbackIds": [_HOOK], "timeout": _HOOK_SECONDS}]
        start = {"subtype": "initialize", "hooks": {"PreToolUse": hooks}}
        content: list[JsonObject] = [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            }
            for mime_type, data in job.images
        ]
        content.append({"type": "text", "text": job.prompt})
        prompt = {"role": "user", "content": content if job.images else job.prompt}
        lines: list[JsonObject] = [
            {"type": "control_request", "request_id": _HOOK, "request": start},
            {"type": "user", "message": prompt, "parent_tool_use_id": None, "session_id": ""},
        ]
        return b"".join(encode_json(line) + b"\n" for line in lines)

    def reader(self) -> "ClaudeReader":
        return ClaudeReader()

    def answer(self, asked: Asked, permit: Permit) -> bytes:
        response: JsonObject
        if asked.form == "hook_callback":
            decision: JsonObject = {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow" if permit.allowed else "deny",
                "permissionDecisionReason": permit.reason,
            }
            if permit.allowed and permit.args != asked.call.args:
                decision["updatedInput"] = permit.args
            response = {"hookSpecificOutput": decision}
        elif permit.allowed:
            response = {"behavior": "allow", "updatedInput": permit.args}
        else:
            response = {"behavior": "deny", "message": permit.reason}
        inner = {"subtype": "success", "request_id": asked.request_id, "response": response}
        return encode_json({"type": "control_response", "response": inner}) + b"\n"

    def is_partial(self, event: JsonObject) -> bool:
        return event.get("type") == "stream_event"


class ClaudeReader:
    """Puts the blocks of a message together, which arrive one a line.

    Tools may be asked about while their message still arrives: such a question waits for the
    message, so that a message with several calls stays one.
    """

    def __init__(self) -> None:
        self._session = ""
        self._model = ""
        self._message = ""
        self._parent = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[CallMade] = []
        self._questions: list[Asked] = []
        self._streaming = False
        self._usage: Usage | None = None
        self._spent: list[Usage] = []
        self._began: set[str] = set()

    def read(self, event: JsonObject) -> Iterator[Item]:
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                yield from self._open(event)
            case "stream_event":
                yield from self._stream(event)
            case "assistant":
                yield from self._block(event)
            case "user":
                yield from self._results(event)
            case "control_request":
                yield from self._ask(event)
            case "result":
                yield from self._end(event)

    def finish(self) -> Iterator[Item]:
        yield from self._flush()
        yield from self._settle(None)

    def _open(self, event: JsonObject) -> Iterator[Item]:
        session, model = text_of(event.get("session_id")), text_of(event.get("model"))
        if session and session != self._session:
            self._session = session
            yield SessionOpened(session)
        if model and model != self._model:
            self._model = model
            yield ModelNamed(model)

    def _stream(self, event: JsonObject) -> Iterator[Item]:
        part = object_of(event.get("event"))
        if event.get("parent_tool_use_id"):
            return
        match part.get("type"):
            case "message_start":
                yield from self._flush()
                yield from self._settle(None)
                message = object_of(part.get("message"))
                self._message, self._streaming = text_of(message.get("id")), True
                self._usage = read_usage(object_of(message.get("usage")))
                yield TurnBegan()
            case "content_block_delta":
                delta = object_of(part.get("delta"))
                if text := text_of(delta.get("text")):
                    yield Piece(text)
                elif text := text_of(delta.get("thinking")):
                    yield Piece(text, is_reasoning=True)
            case "message_delta":
                self._usage = merge_usage(self._usage, read_usage(object_of(part.get("usage"))))
            case "message_stop":
                self._streaming = False
                yield from self._flush()

    def _block(self, event: JsonObject) -> Iterator[Item]:
        message, parent = object_of(event.get("message")), text_of(event.get("parent_tool_use_id"))
        key = text_of(message.get("id"))
        if message.get("model") == "<synthetic>":  # an error, which the result repeats
            return
        if parent != self._parent or (key != self._message and (self._calls or self._text)):
            yield from self._flush()
        if key != self._message and not parent:
            yield from self._settle(None)
            self._usage = read_usage(object_of(message.get("usage")))
            self._message = key
            yield TurnBegan()
        self._parent = parent
        for block in list_of(message.get("content")):
            match block.get("type"):
                case "text":
                    self._text.append(text_of(block.get("text")))
                case "thinking":
                    self._reasoning.append(text_of(block.get("thinking")))
                case "tool_use":
                    self._calls.append(read_call(block))
        if parent or not self._streaming:
            yield from self._flush()

    def _results(self, event: JsonObject) -> Iterator[Item]:
        message = object_of(event.get("message"))
        results = [
            block for block in list_of(message.get("content")) if block.get("type") == "tool_result"
        ]
        if results:
            yield from self._flush()
        for block in results:
            yield CallEnded(
                id=text_of(block.get("tool_use_id")),
                text=join_text(block.get("content")),
                failed=block.get("is_error") is True,
            )

    def _ask(self, event: JsonObject) -> Iterator[Item]:
        request = object_of(event.get("request"))
        form, given = text_of(request.get("subtype")), request
        if form == "hook_callback":
            given = object_of(request.get("input"))
        elif form != "can_use_tool":
            return
        call_id = text_of(given.get("tool_use_id")) or text_of(request.get("tool_use_id"))
        asked = Asked(
            request_id=text_of(event.get("request_id")),
            call=CallMade(
                id=call_id,
                name=text_of(given.get("tool_name")),
                args=object_of(given.get("tool_input", given.get("input"))),
            ),
            form=form,
        )
        if self._streaming and any(call.id == call_id for call in self._calls):
            self._questions.append(asked)
        else:
            yield from self._flush()
            yield asked

    def _flush(self) -> Iterator[Item]:
        """Report the message so far, then ask the questions that waited for it."""
        text, reasoning = "\n".join(filter(None, self._text)), "\n".join(self._reasoning)
        calls, questions = tuple(self._calls), tuple(self._questions)
        self._text, self._reasoning, self._calls, self._questions = [], [], [], []
        if text or reasoning or calls:
            yield Said(text=text, reasoning=reasoning, calls=calls, parent=self._parent)
            for call in calls:
                yield CallBegan(call=call, parent=self._parent)
        yield from questions

    def _settle(self, cost: float | None) -> Iterator[Item]:
        """Report the tokens of the last model call."""
        usage, self._usage = self._usage, None
        if usage is not None:
            yield self._spend(usage, cost)

    def _spend(self, usage: Usage, cost: float | None) -> Spent:
        """Return the use of a call; the cost is that of all calls so far."""
        settled = 0 if cost is None else len(self._spent)
        self._spent.append(usage)
        return Spent(usage=usage, model=self._model or None, cost_usd=cost, settles=settled)

    def _end(self, event: JsonObject) -> Iterator[Item]:
        yield from self._flush()
        cost = amount_of(event.get("total_cost_usd"))
        rest = self._rest(event)
        yield from self._settle(None if rest else cost)
        if rest:
            yield self._spend(rest, cost)
        failed = event.get("is_error") is True or event.get("subtype") != "success"
        error = ""
        if failed:
            listed = event.get("errors")
            several = listed if isinstance(listed, list) else []
            error = text_of(event.get("result")) or "; ".join(map(text_of, several))
            error = error or text_of(event.get("subtype")) or "it failed without a reason"
        yield Ended(
            error=error,
            status=count_of(event.get("api_error_status")),
            turns=count_of(event.get("num_turns")),
            duration_ms=count_of(event.get("duration_api_ms")),
            cost_usd=cost,
        )

    def _rest(self, event: JsonObject) -> Usage | None:
        """Return the tokens that the result counts and no message of the main agent did.

        These are calls of its own sub-agents, and side calls.
        """
        models = [
            read_model_usage(object_of(value))
            for value in object_of(event.get("modelUsage")).values()
        ]
        known = [*self._spent, *([self._usage] if self._usage else [])]
        fields = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        rest = {
            field: max(0, total - (add_up(*(getattr(usage, field) for usage in known)) or 0))
            for field in fields
            if (total := add_up(*(getattr(model, field) for model in models))) is not None
        }
        return Usage(**rest) if any(rest.values()) else None


def read_call(block: JsonObject) -> CallMade:
    return CallMade(
        id=text_of(block.get("id")),
        name=text_of(block.get("name")),
        args=object_of(block.get("input")),
    )


def read_usage(usage: JsonObject) -> Usage:
    """Return the tokens of a message; the service counts cached ones apart."""
    read = count_of(usage.get("cache_read_input_tokens"))
    written = count_of(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=add_up(count_of(usage.get("input_tokens")), read, written),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def read_model_usage(usage: JsonObject) -> Usage:
    """Return the tokens of all calls to a model, as the result counts them."""
    read = count_of(usage.get("cacheReadInputTokens"))
    written = count_of(usage.get("cacheCreationInputTokens"))
    return Usage(
        input_tokens=add_up(count_of(usage.get("inputTokens")), read, written),
        output_tokens=count_of(usage.get("outputTokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def merge_usage(first: Usage | None, last: Usage) -> Usage:
    """Return the later count of each kind, where there is one."""
    if first is None:
        return last
    fields = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    later = {field: value for field in fields if (value := getattr(last, field)) is not None}
    return msgspec.structs.replace(first, **later)
