"""The conversation: messages in the order that model services accept, folded from events."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from trimtab.contracts.events import assistant, context, own, system, tool, user
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.messages import (
    INTERRUPTED,
    AssistantMessage,
    Image,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    replace_images,
)

NO_IMAGE = "[An image was here; it was removed because the request was too large.]"
IMAGE_CHARACTERS = 3000
"""The number of characters that cost about as much as an image."""


class Conversation:
    """The messages of one agent.

    Results of parallel calls arrive in completion order; services expect them together, after the
    message with the calls. So results wait in `_open` until the group is complete, and a call
    without a result counts as interrupted as soon as anything else follows it.
    """

    reads: ClassVar[frozenset[str]] = frozenset(
        (
            "system.message",
            "system.notification",
            "user.message",
            "assistant.message",
            "tool.execution_complete",
            "session.compaction_start",
            "session.compaction_complete",
            "session.context_cleared",
            "trimtab.images_removed",
            "trimtab.arguments_changed",
        )
    )

    def __init__(self, agent_id: str | None = None) -> None:
        self._agent_id = agent_id
        self._messages: list[Message] = []
        self._open: dict[str, ToolMessage | None] = {}
        self._calls: dict[str, ToolCall] = {}
        self._late: list[UserMessage] = []
        self._cut: int | None = None
        self._counted: tuple[Sequence[Message], int, int, int] = ((), 0, 0, 0)
        self.system = ""
        self.compactions = 0
        """The number of compactions so far."""

    @property
    def messages(self) -> Sequence[Message]:
        """A list that only grows between compactions; the caller must not change it."""
        if not self._open:
            return self._messages
        return [*self._messages, *self._results(), *self._late]

    @property
    def characters(self) -> int:
        """The total length of the messages. Counts only messages added since the last call."""
        return self._count()[0]

    @property
    def size(self) -> int:
        """The size of the messages on a wire in bytes, images included."""
        return self._count()[1]

    def _count(self) -> tuple[int, int]:
        counted, index, length, size = self._counted
        if counted is not self._messages:
            index, length, size = 0, 0, 0
        elif index == len(self._messages):
            return length, size
        new = self._messages[index:]
        length += sum(map(_length, new))
        size += sum(map(_size, new))
        self._counted = (self._messages, len(self._messages), length, size)
        return length, size

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Ids of calls that have no result yet."""
        return tuple(call_id for call_id, result in self._open.items() if result is None)

    @property
    def open_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that have no result yet."""
        return tuple(self._calls[call_id] for call_id in self.open_calls)

    def apply(self, event: Event) -> None:
        if event.agent_id != self._agent_id:
            return
        match event.data:
            case user.UserMessage() as message:
                self._add_user(message)
            case assistant.AssistantMessage() as message:
                self._add_assistant(message)
            case tool.ToolExecutionComplete() as done:
                self._add_result(done)
            case system.SystemMessage(role="system", content=content):
                self.system = content
            case system.SystemNotification(content=content):
                self._append_user(UserMessage.of(content))
            case data:
                self._rewrite(data)

    def _rewrite(self, data: object) -> None:
        """Apply an event that changes earlier messages."""
        match data:
            case context.SessionCompactionStart():
                # Never between a message and the results of its calls.
                self._cut = len(self._messages) - bool(self._open)
            case context.SessionCompactionComplete() as done:
                self._compact(done)
            case context.SessionContextCleared():
                self._close_group()
                self._messages = []
            case own.ImagesRemoved():
                self._remove_images()
            case own.ArgumentsChanged() as changed:
                self._change_arguments(changed)

    def _add_user(self, message: user.UserMessage) -> None:
        text = (
            message.content if message.transformed_content is None else message.transformed_content
        )
        parts: list[Part] = [Text(text=text)] if text else []
        for attachment in message.attachments or ():
            if image := _image(attachment):
                parts += [Text(text=image.name), image] if image.name else [image]
        if parts:
            self._append_user(UserMessage(parts=tuple(parts)))

    def _append_user(self, message: UserMessage) -> None:
        if self.open_calls:
            self._late.append(message)
        else:
            self._close_group()
            self._messages.append(message)

    def _add_assistant(self, message: assistant.AssistantMessage) -> None:
        self._close_group()
        calls = tuple(_call(request) for request in message.tool_requests or ())
        self._messages.append(
            AssistantMessage(
                text=message.content,
                tool_calls=calls,
                reasoning=_reasoning(message),
                phase=message.phase,
            )
        )
        self._open = {call.id: None for call in calls}
        self._calls = {call.id: call for call in calls}

    def _add_result(self, done: tool.ToolExecutionComplete) -> None:
        if done.tool_call_id not in self._open:
            return  # a call a person requested, or a call already answered as interrupted
        call = self._calls[done.tool_call_id]
        self._open[call.id] = ToolMessage(
            call_id=call.id,
            text=_text_for_model(done),
            name=call.name,
            failed=not done.success,
            kind=call.kind,
        )
        if not self.open_calls:
            self._close_group()

    def _results(self) -> list[Message]:
        return [
            result
            or ToolMessage(
                call_id=call_id,
                text=INTERRUPTED,
                name=self._calls[call_id].name,
                failed=True,
                kind=self._calls[call_id].kind,
            )
            for call_id, result in self._open.items()
        ]

    def _close_group(self) -> None:
        if self._open:
            self._messages += self._results()
            self._open = {}
            self._calls = {}
        if self._late:
            self._messages += self._late
            self._late = []

    def _change_arguments(self, changed: own.ArgumentsChanged) -> None:
        """Show a call as it was made. Calls that are resumed are made anew, with their hooks."""
        text = msgspec.json.encode(changed.arguments).decode()

        def change(message: Message) -> Message:
            if not isinstance(message, AssistantMessage):
                return message
            calls = tuple(
                msgspec.structs.replace(call, arguments=text)
                if call.id == changed.tool_call_id and call.kind == "function"
                else call
                for call in message.tool_calls
            )
            return msgspec.structs.replace(message, tool_calls=calls)

        if changed.tool_call_id in self._open:
            # Replaced, not changed: a request that is being written still uses the old list.
            self._messages = [*self._messages[:-1], change(self._messages[-1])]

    def _remove_images(self) -> None:
        self._messages = [
            replace_images(message, NO_IMAGE) if isinstance(message, UserMessage) else message
            for message in self._messages
        ]
        self._late = [replace_images(message, NO_IMAGE) for message in self._late]

    def _compact(self, done: context.SessionCompactionComplete) -> None:
        cut, self._cut = self._cut, None
        shortened = done.success or done.outcome == context.MECHANICAL
        if not shortened or not done.summary_content or cut is None:
            return
        self.compactions += 1
        # Replaced, not changed: a request that is being written still uses the old list.
        self._messages = [UserMessage.of(done.summary_content), *self._messages[cut:]]


def _length(message: Message) -> int:
    if isinstance(message, UserMessage):
        return sum(len(p.text) if isinstance(p, Text) else IMAGE_CHARACTERS for p in message.parts)
    if isinstance(message, AssistantMessage):
        return len(message.text) + sum(len(call.arguments) for call in message.tool_calls)
    return len(message.text)


def _size(message: Message) -> int:
    if isinstance(message, UserMessage):
        return sum(_bytes(p.text) if isinstance(p, Text) else len(p.data) for p in message.parts)
    if isinstance(message, AssistantMessage):
        return _bytes(message.text) + sum(len(call.arguments) for call in message.tool_calls)
    return _bytes(message.text)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _text_for_model(done: tool.ToolExecutionComplete) -> str:
    if done.model_text is not None:
        return done.model_text
    source: dict[str, Any] | None = done.result if done.success else done.error
    text = (source or {}).get("content" if done.success else "message")
    return text if isinstance(text, str) else ""


def _call(request: dict[str, Any]) -> ToolCall:
    arguments = request.get("arguments")
    if not isinstance(arguments, str):
        arguments = _encode_arguments(arguments if arguments is not None else {})
    return ToolCall(
        id=str(request.get("toolCallId", "")),
        name=str(request.get("name", "")),
        arguments=arguments,
        kind="custom" if request.get("type") == "custom" else "function",
        extra=request.get("extra"),
    )


def _encode_arguments(arguments: Any) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except UnicodeEncodeError:  # a lone surrogate, which other programs write
        import json

        return json.dumps(arguments, separators=(",", ":"))


def _reasoning(message: assistant.AssistantMessage) -> Reasoning | None:
    blocks = message.reasoning_blocks
    if not (
        message.reasoning_text or message.reasoning_opaque or message.encrypted_content or blocks
    ):
        return None
    return Reasoning(
        text=message.reasoning_text,
        opaque=message.reasoning_opaque,
        encrypted=message.encrypted_content,
        field=message.reasoning_wire_field,
        blocks=blocks.get("blocks") if blocks else None,
    )


def _image(attachment: dict[str, Any]) -> Image | None:
    mime_type = attachment.get("mimeType")
    data = attachment.get("data")
    if attachment.get("type") != "blob" or not isinstance(data, str):
        return None
    if not isinstance(mime_type, str) or not mime_type.startswith("image/"):
        return None
    return Image(data=data, mime_type=mime_type, name=attachment.get("displayName"))
