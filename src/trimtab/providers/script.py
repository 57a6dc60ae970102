"""The script of a scripted model: its replies, its rules and its failures.

The format is documented for users in docs/guides/scripted-model.md.
"""

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.messages import AssistantMessage, Reasoning, ToolCall
from trimtab.contracts.provider import Reply, Usage

DEFAULT_MODEL = "scripted"


class Thought(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str | None = None
    opaque: str | None = None
    encrypted: str | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call. Arguments given as text are sent unchanged, valid or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None
    kind: Literal["function", "custom"] = "function"


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An HTTP error. `body` replaces the body that the wire would send."""

    status: int
    message: str = "The script requests this failure."
    code: str | None = None
    headers: dict[str, str] = {}
    body: dict[str, Any] | str | None = None


class Break(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The point where an answer is cut off, in pieces or bytes of its body; else before its head.

    `close` ends the connection, `reset` resets it, `half` ends only the sending direction, and
    `stall` sends nothing more, for `seconds` or until the client disconnects.
    """

    how: Literal["close", "reset", "half", "stall"] = "close"
    after: int = 0
    after_bytes: int | None = None
    seconds: float | None = None

    @property
    def at_start(self) -> bool:
        return not self.after and self.after_bytes is None


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The condition of a rule: regular expressions that must all match."""

    last: str | None = None
    system: str | None = None
    model: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply or a failure."""

    text: str = ""
    reasoning: Thought | None = None
    tools: tuple[Call, ...] = ()
    usage: Tokens = Tokens()
    finish: str | None = None
    model: str | None = None
    headers: dict[str, str] = {}
    delay: float = 0.0
    chunk: int = 16
    chunk_delay: float = 0.0
    error: Failure | None = None
    broken: Break | None = msgspec.field(default=None, name="break")
    raw: str | None = None
    when: When | None = None
    repeat: int | Literal["forever"] | None = None

    @property
    def uses(self) -> float:
        """The number of uses: by default unlimited for a rule, one for a reply."""
        if self.repeat is None:
            return 1 if self.when is None else float("inf")
        return float("inf") if self.repeat == "forever" else self.repeat


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that rules match. `last` is the newest user or tool message."""

    last: str
    system: str
    model: str


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replies in order, rules that take precedence, and the reply after the last."""

    replies: tuple[Step, ...] = ()
    otherwise: Step | None = None
    models: tuple[str | dict[str, Any], ...] = (DEFAULT_MODEL,)
    """The listed models: names, or objects with `id` whose fields override the defaults."""

    @classmethod
    def of(cls, value: Any, name: str = "") -> "Script":
        """Build a script from plain values: a list of replies, or a mapping with `replies`."""
        if isinstance(value, list | tuple):
            value = {"replies": list(value)}
        if not isinstance(value, dict):
            raise _invalid(name, "it is neither a list of replies nor a mapping")
        value = dict(value)
        value["replies"] = [_plain_step(step) for step in _items(value.get("replies"))]
        if "otherwise" in value:
            value["otherwise"] = _plain_step(value["otherwise"])
        try:
            script = msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise _invalid(name, _one_line(error)) from None
        script.check(name)
        return script

    @classmethod
    def parse(cls, text: str, name: str = "") -> "Script":
        """Parse a script in YAML or JSON."""
        if text.lstrip().startswith(("[", "{")):
            try:
                return cls.of(msgspec.json.decode(text), name)
            except msgspec.DecodeError as error:
                raise _invalid(name, _one_line(error)) from None
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return cls.of(yaml.load(text, loader), name)  # noqa: S506 - it is a safe loader
        except yaml.YAMLError as error:
            raise _invalid(name, _one_line(error)) from None

    @classmethod
    def load(cls, path: str) -> "Script":
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"The script {path} cannot be read ({_one_line(error)}); check the path."
            ) from None
        return cls.parse(text, path)

    def check(self, name: str) -> None:
        """Raise `ConfigurationError` if a rule is not a valid regular expression."""
        for step in self.replies:
            for pattern in _patterns(step):
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise _invalid(
                        name, f"{pattern!r} is not a regular expression: {error}"
                    ) from None


class Player:
    """Plays a script: returns the step for each request. `requests` is the initial count."""

    def __init__(self, script: Script, requests: int = 0) -> None:
        self.script = script
        self.requests = requests
        self._used = [0] * len(script.replies)
        steps = range(len(script.replies))
        self._rules = [index for index in steps if script.replies[index].when is not None]
        self._ordered = [index for index in steps if script.replies[index].when is None]
        self._position = 0

    def next(self, describe: Callable[[], RequestFacts]) -> Step:
        """Return the step for the next request. `describe` is called only if there are rules."""
        self.requests += 1
        index = self._matching(describe()) if self._rules else None
        if index is None:
            index = self._following()
        if index is None:
            return _filled(self.script.otherwise or self._exhausted(), self.requests, 1)
        self._used[index] += 1
        return _filled(self.script.replies[index], self.requests, self._used[index])

    def _matching(self, facts: RequestFacts) -> int | None:
        for index in self._rules:
            if self._usable(index) and _matches(self.script.replies[index], facts):
                return index
        return None

    def _following(self) -> int | None:
        while self._position < len(self._ordered):
            index = self._ordered[self._position]
            if self._usable(index):
                return index
            self._position += 1
        return None

    def _usable(self, index: int) -> bool:
        return self._used[index] < self.script.replies[index].uses

    def _exhausted(self) -> Step:
        message = (
            f"The script has no reply left for request {self.requests}; add one, or an 'otherwise'."
        )
        # The client does not retry this status, which would not help.
        return Step(error=Failure(status=400, message=message, code="script_exhausted"))


def reply_of(step: Step, request: int, input_bytes: int) -> Reply:
    """Return the reply of a step; missing token counts are a quarter of the bytes."""
    calls = tuple(
        _tool_call(call, request, position) for position, call in enumerate(step.tools, 1)
    )
    thought = step.reasoning
    reasoning = None
    if thought is not None:
        reasoning = Reasoning(
            text=thought.text,
            opaque=thought.opaque,
            encrypted=thought.encrypted,
            field="reasoning_text" if thought.text else None,
        )
    written = [step.text, thought.text or "" if thought else ""]
    written += [call.name + call.arguments for call in calls]
    output_bytes = sum(len(text.encode("utf-8", "replace")) for text in written)
    tokens = step.usage
    return Reply(
        message=AssistantMessage(text=step.text, tool_calls=calls, reasoning=reasoning),
        usage=Usage(
            input_tokens=input_bytes // 4 if tokens.input is None else tokens.input,
            output_tokens=max(1, output_bytes // 4) if tokens.output is None else tokens.output,
            cache_read_tokens=tokens.cached,
            cache_write_tokens=tokens.cache_write,
            reasoning_tokens=tokens.reasoning,
        ),
        finish_reason=step.finish or ("tool_calls" if calls else "stop"),
        model=step.model,
        request_id=f"scripted-{request}",
    )


def _tool_call(call: Call, request: int, position: int) -> ToolCall:
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    call_id = call.id or f"call_{request}_{position}"
    return ToolCall(id=call_id, name=call.name, arguments=arguments, kind=call.kind)


def _filled(step: Step, request: int, use: int) -> Step:
    """Replace `{n}` (the number of the request) and `{i}` (the use of this step) in a step."""
    if not step.text and not step.tools:
        return step

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{n}", str(request)).replace("{i}", str(use))
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    tools = tuple(
        msgspec.structs.replace(call, arguments=fill(call.arguments)) for call in step.tools
    )
    return msgspec.structs.replace(step, text=fill(step.text), tools=tools)


def _matches(step: Step, facts: RequestFacts) -> bool:
    rule = step.when
    return rule is not None and all(
        pattern is None or re.search(pattern, text) is not None
        for pattern, text in (
            (rule.last, facts.last),
            (rule.system, facts.system),
            (rule.model, facts.model),
        )
    )


def _patterns(step: Step) -> list[str]:
    rule = step.when
    given = (rule.last, rule.system, rule.model) if rule else ()
    return [pattern for pattern in given if pattern is not None]


# The fields with a short form, and the field of the long form that it sets.
_SHORT_FORMS = {"reasoning": "text", "error": "status", "break": "how", "when": "last"}


def _plain_step(value: Any) -> Any:
    """Return the long form of a step."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        return value
    step = dict(value)
    for name, field in _SHORT_FORMS.items():
        if name in step and not isinstance(step[name], dict):
            step[name] = {field: step[name]}
    if "tools" in step:
        step["tools"] = [_plain_call(call) for call in _items(step["tools"])]
    return step


def _plain_call(value: Any) -> Any:
    """Return the long form of a call; `{bash: {command: ls}}` is a short form."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and len(value) == 1 and "name" not in value:
        ((name, arguments),) = value.items()
        return {"name": name, "arguments": {} if arguments is None else arguments}
    return value


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _invalid(name: str, reason: str) -> ConfigurationError:
    script = f"script {name}" if name else "script"
    return ConfigurationError(
        f"The {script} is invalid ({reason}); see the guide on the scripted model."
    )
