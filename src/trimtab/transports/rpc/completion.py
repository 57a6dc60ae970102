"""Waits until a prompt is answered."""

import asyncio

import msgspec

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.own import PromptWithdrawn
from trimtab.contracts.events.question import AutoModeSwitchCompleted
from trimtab.contracts.events.session import SessionError, SessionIdle, SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.runtime.live import LiveSession
from trimtab.transports.rpc.protocol import FAILED, RpcError


class Completion:
    """Listens to a session from before a prompt is sent until the prompt is answered."""

    def __init__(self, live: LiveSession) -> None:
        self._message_id = ""
        self._begun = False
        self._seen: list[Event] = []
        self._pending: RpcError | None = None
        self._response: tuple[Event, bytes] | None = None
        self._done: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self.close = live.subscribe(self._on_event)

    async def wait(self, message_id: str) -> JsonObject:
        """Return how the answer ended. Raises `RpcError` if it ended with an error."""
        self._message_id = message_id
        return await self._done

    def _on_event(self, event: Event, line: bytes) -> None:
        if self._done.done() or event.agent_id is not None:
            return
        match event.data:
            case UserMessage(message_id=message_id) if message_id == self._message_id:
                self._begun = True
            case UserMessage(source=None, delivery=delivery) if (
                self._begun and delivery != "steering"
            ):
                self._finish(None, aborted=False)  # the next prompt begins, so ours is answered
            case SessionWarning(originating_message_id=message_id) if (
                message_id is not None and message_id == self._message_id
            ):
                self._begun = True
            case PromptWithdrawn(message_id=message_id) if (
                message_id == self._message_id and not self._begun
            ):
                self._finish(None, aborted=True)
            case AssistantMessage() if self._begun:
                self._response = (event, line)
            case SessionError() | AutoModeSwitchCompleted():
                self._on_error(event)
            case SessionIdle(aborted=aborted) if self._begun or aborted:
                self._finish(event, aborted=bool(aborted))

    def _on_error(self, event: Event) -> None:
        match event.data:
            case AutoModeSwitchCompleted(response=response):
                if self._pending is not None and response == "no":
                    self._done.set_exception(self._pending)
                self._pending = None
            case SessionError(message=message, eligible_for_auto_switch=eligible):
                about = {"completionEventId": event.id}
                self._pending = RpcError(FAILED, f"Session error: {message}", about)
                if not eligible:  # otherwise the client may still choose another model
                    self._done.set_exception(self._pending)

    def _finish(self, event: Event | None, *, aborted: bool) -> None:
        result: JsonObject = {"messageId": self._message_id, "aborted": aborted}
        if event is not None:
            result["completionEventId"] = event.id
        if self._response is not None:
            result["response"] = msgspec.Raw(self._response[1])
        self._done.set_result(result)
