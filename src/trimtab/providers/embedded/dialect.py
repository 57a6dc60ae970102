"""A simple protocol that the small embedded model can follow, translated to real tool calls.

The model makes one call at a time, constrained by a JSON schema. It sees a shortened conversation,
and the calls it may make depend on what happened before: a failing check must be followed by a
change, a change by a check, and a passing check by the answer.
"""

import os
import re
from collections.abc import Collection
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from trimtab.contracts.provider import Reply, Request, Usage

STILL_WRONG = (
    "\nThe check still fails, so what you wrote is not right yet. Compare the expected value with "
    "what the code computes, and change the operator, number or name that is wrong."
)
NOT_THE_CHECK = (
    "\nThat passed before anything was changed, so it is not what fails. Run the file that the "
    "task says fails."
)
NOTHING_CHANGED = (
    "That is the file as it was, so nothing changed. Which operator, number or word in it is "
    "wrong? Write the file with that one changed."
)
MAX_RESULT_LENGTH = 1500
MAX_CALLS = 14
_CHANGE = re.compile(
    r"\b(fix|repair|correct|change|make|add|write|create|implement|rename|remove|replace|update)",
    re.IGNORECASE,
)
_EXIT = re.compile(r"<exited with exit code (-?\d+)>")
_FILE = re.compile(r"^(\S+):\n```\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_NOISE = re.compile(r'^(Traceback .*|  File ".*|[ ~^]+)\n', re.MULTILINE)
"""The lines of a Python traceback that tell where an error occurred, not which."""
_STRING = {"type": "string"}


class _Call(msgspec.Struct, frozen=True):
    name: str
    path: str = ""
    text: str = ""
    command: str = ""


class _Answer(msgspec.Struct, frozen=True):
    thought: str
    call: _Call


class Story:
    """The events since the person's last prompt, in the terms of the dialect."""

    def __init__(self, request: Request) -> None:
        self.turns: list[dict[str, str]] = []
        self.files: dict[str, str] = {}
        self.calls = 0
        self.task = ""
        self.wrote = False
        self.passed: bool | None = None
        self.last: str | None = None
        self.failed = False
        self.misses = 0
        self.check = ""
        self.tried: dict[str, list[str]] = {}
        pending: dict[str, ToolCall] = {}
        for message in request.messages:
            if isinstance(message, UserMessage):
                texts = [part.text for part in message.parts if isinstance(part, Text)]
                self._add_prompt("\n".join(texts))
            elif isinstance(message, AssistantMessage):
                pending = {call.id: call for call in message.tool_calls}
                self._add_answer(message)
            elif isinstance(message, ToolMessage) and message.call_id in pending:
                self._add_result(pending[message.call_id], message)

    def _add_prompt(self, text: str) -> None:
        plain = re.sub(r"<current_datetime>.*?</current_datetime>\s*", "", text, flags=re.DOTALL)
        self.task, self.calls, self.wrote, self.passed, self.last = plain, 0, False, None, None
        self.misses = 0
        self.check, self.tried = "", {}
        self.files.update(dict(_FILE.findall(plain)))
        self.turns.append({"role": "user", "content": plain})

    def _add_answer(self, message: AssistantMessage) -> None:
        call = to_dialect(message.tool_calls[0]) if message.tool_calls else {"name": "answer"}
        answer = {"thought": message.text, "call": call}
        self.turns.append({"role": "assistant", "content": msgspec.json.encode(answer).decode()})

    def _add_result(self, call: ToolCall, message: ToolMessage) -> None:
        self.calls += 1
        self.failed = message.failed
        arguments = call.readable_arguments()
        self.last = {"edit": "write", "create": "write"}.get(call.name, call.name)
        text = message.text
        if self.last == "write" and not message.failed and isinstance(arguments, dict):
            self.wrote, self.passed = True, None
            written = arguments.get("new_str", arguments.get("file_text", ""))
            path = _key(arguments.get("path"))
            self.tried.setdefault(path, [self.files.get(path, "")])
            self.files[path] = str(written).rstrip("\n")
            self.tried[path].append(self.files[path])
            text = "File written."
        elif call.name == "view" and not message.failed and isinstance(arguments, dict):
            self.files[_key(arguments.get("path"))] = _unnumbered(text)
            text = _unnumbered(text)
        elif call.name == "bash":
            code = _EXIT.search(text)
            self.passed = code is not None and code[1] == "0"
            if isinstance(arguments, dict):
                self.check = str(arguments.get("command") or "")
            text = _NOISE.sub("", text)
            if self.wrote and not self.passed:
                self.misses += 1
                text += STILL_WRONG + self._describe_attempts()
            elif self.passed and not self.wrote and _CHANGE.search(self.task):
                self.misses += 1
                text += NOT_THE_CHECK
        if message.failed:
            self.misses += 1
            text = NOTHING_CHANGED if self.last == "write" and "No changes" in text else text
        if len(text) > MAX_RESULT_LENGTH:
            text = "…" + text[-MAX_RESULT_LENGTH:]
        self.turns.append({"role": "user", "content": f"Result of {self.last}:\n{text}"})

    def _describe_attempts(self) -> str:
        """Return the lines that were tried and are wrong, and the original text of each file."""
        lines = {
            line.strip()
            for first, *later in self.tried.values()
            for text in later
            for line in set(text.split("\n")) - set(first.split("\n"))
            if line.strip()
        }
        attempts = [f"\nTried already, wrong: {line}" for line in sorted(lines)]
        attempts += [
            f"\n{path} was first:\n```\n{first}\n```\nWrite all of it with the wrong part changed."
            for path, (first, *_) in self.tried.items()
            if first
        ]
        return "".join(attempts)

    @property
    def next_check(self) -> str:
        """The command to run next without asking the model: the check, after every change."""
        return self.check if self.last == "write" and not self.failed else ""

    @property
    def writable(self) -> list[str]:
        """The files that may be changed: all but those that the check runs."""
        return [path for path in self.files if os.path.basename(path) not in self.check]

    def is_repeat(self, call: ToolCall | None) -> bool:
        """Return True if a call would write a text that is there or was tried, or run the last
        command again."""
        if call is None:
            return False
        arguments = call.readable_arguments()
        if not isinstance(arguments, dict) or call.name not in ("bash", "edit", "create"):
            return False
        if call.name == "bash":
            return self.last == "bash" and arguments.get("command") == self.check
        path = _key(arguments.get("path"))
        text = str(arguments.get("new_str", arguments.get("file_text", ""))).rstrip("\n")
        return text == self.files.get(path) or text in self.tried.get(path, ())

    def allowed(self, tools: Collection[str]) -> list[str]:
        """Return the names of the calls that the model may make next."""
        changing = bool(_CHANGE.search(self.task))
        if not tools or self.calls >= MAX_CALLS or (self.wrote and self.passed):
            names = ["answer"]
        elif not changing:
            names = ["answer"] if self.misses or self.calls > 3 else ["view", "bash", "answer"]
        elif self.last == "write":
            names = ["view", "write"] if self.failed else ["bash"]
        elif self.last == "bash" and not self.passed and self.files:
            names = ["write"]
        elif self.calls == 0 and self.files:
            names = ["bash"]
        else:
            names = ["view", "write", "bash"]
        real = {"write": "edit", "view": "view", "bash": "bash"}
        return [name for name in names if name == "answer" or real[name] in tools] or ["answer"]


def check_again(request: Request) -> Reply | None:
    """Return a reply that runs the check again after a change, without asking the model."""
    command = Story(request).next_check
    if not command or all(spec.name != "bash" for spec in request.tools):
        return None
    call = _to_tool(_Call("bash", command=command), Story(request), (), len(request.messages))
    assert call is not None
    return Reply(
        message=AssistantMessage(text="", tool_calls=(call,)),
        usage=Usage(input_tokens=0, output_tokens=0),
        finish_reason="tool_calls",
        model=request.model,
    )


def body_of(request: Request, instructions: str, attempt: int = 0) -> bytes:
    """Return the request body for the engine; each attempt raises the temperature."""
    story = Story(request)
    names = story.allowed([spec.name for spec in request.tools])
    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": instructions}, *story.turns],
        "temperature": min(1.0, 0.3 * story.misses + 0.3 * attempt),
        "seed": 7 + 16 * story.calls + attempt,
        "max_tokens": 700,
        "cache_prompt": True,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"schema": _schema(names, story)},
        },
    }
    return msgspec.json.encode(body)


def reply_of(body: bytes, request: Request) -> Reply:
    """Convert the engine's answer to a reply with calls of the real tools."""
    completion = msgspec.json.decode(body)
    usage = completion.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    try:
        content = completion["choices"][0]["message"]["content"]
        answer = msgspec.json.decode(content, type=_Answer)
    except msgspec.DecodeError:  # cut off at the token limit
        call = _Call("answer", text="I could not finish that.")
        answer = _Answer("My answer was too long.", call)
    names = {spec.name for spec in request.tools}
    tool_call = _to_tool(answer.call, Story(request), names, number=len(request.messages))
    text = answer.call.text if tool_call is None else answer.thought
    return Reply(
        message=AssistantMessage(text=text, tool_calls=(tool_call,) if tool_call else ()),
        usage=Usage(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cache_read_tokens=cached,
        ),
        finish_reason="tool_calls" if tool_call else "stop",
        model=request.model,
    )


def to_dialect(call: ToolCall) -> dict[str, Any]:
    """Return a call of a real tool as the model wrote it."""
    arguments = call.readable_arguments()
    if not isinstance(arguments, dict):
        return {"name": "answer", "text": ""}
    match call.name:
        case "edit" | "create":
            text = arguments.get("new_str", arguments.get("file_text", ""))
            return {"name": "write", "path": arguments.get("path", ""), "text": text}
        case "bash":
            return {"name": "bash", "command": arguments.get("command", "")}
        case "view":
            return {"name": "view", "path": arguments.get("path", "")}
    return {"name": "answer", "text": arguments.get("summary", "")}


def _to_tool(call: _Call, story: Story, tools: Collection[str], number: int) -> ToolCall | None:
    arguments: dict[str, Any]
    match call.name:
        case "bash":
            name, arguments = "bash", {"command": call.command, "description": "Run a command"}
        case "view":
            name, arguments = "view", {"path": call.path}
        case "write":
            name, arguments = _write(call, story)
        case _:
            if "task_complete" not in tools:
                return None
            name, arguments = "task_complete", {"summary": call.text}
    encoded = msgspec.json.encode(arguments).decode()
    return ToolCall(id=f"local_{number}", name=name, arguments=encoded)


def _write(call: _Call, story: Story) -> tuple[str, dict[str, Any]]:
    """Convert a write to an edit if the old text is known, else to a new file."""
    known = story.files.get(_key(call.path))
    new = call.text.rstrip("\n")
    if known is None:
        return "create", {"path": call.path, "file_text": new + "\n"}
    return "edit", {"path": call.path, "old_str": known, "new_str": new}


def _schema(names: list[str], story: Story) -> dict[str, Any]:
    writable = story.writable if story.check else []
    path: dict[str, Any] = {"type": "string", "enum": writable} if writable else _STRING
    fields: dict[str, dict[str, Any]] = {
        "view": {"path": _STRING},
        "write": {"path": path, "text": _STRING},
        "bash": {"command": _STRING},
        "answer": {"text": _STRING},
    }
    calls = [_object({"name": {"const": name}, **fields[name]}) for name in names]
    thought = {"type": "string", "maxLength": 300}
    return _object({"thought": thought, "call": {"anyOf": calls}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _key(path: object) -> str:
    return os.path.normpath(str(path))


def _unnumbered(text: str) -> str:
    lines = [re.sub(r"^\d+\. ?", "", line) for line in text.split("\n")]
    return "\n".join(lines).rstrip("\n")
