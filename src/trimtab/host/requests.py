"""The one door for prompts: a front end hands them in, and may wait until each is answered."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from trimtab.contracts.run import Prompt

if TYPE_CHECKING:
    from trimtab.contracts.events.envelope import Event, JsonObject
    from trimtab.runtime.live import LiveSession


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the work on a request.

    `response` is the last message of the answer, as an event and its line. `end` is the event
    that ended it, None if the next prompt of the queue did. `error` is the event of a failure.
    """

    response: "tuple[Event, bytes] | None" = None
    end: "Event | None" = None
    aborted: bool = False
    error: "Event | None" = None


class Request:
    """A prompt that a session has taken, and its end. Several may be in flight."""

    def __init__(self, live: "LiveSession", prompt: Prompt) -> None:
        self.steers = prompt.mode == "immediate" and live.busy
        """True if it was sent to the work on another request."""
        self._begun = False
        self._response: tuple[Event, bytes] | None = None
        self._failure: Event | None = None
        self._done: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.id = ""
        self._leave = live.subscribe(self._on_event)
        try:
            self.id = live.send(prompt)
        except BaseException:
            self._leave()
            raise

    async def finished(self) -> Answered:
        """Wait until the prompt is answered or withdrawn."""
        return await asyncio.shield(self._done)

    def _on_event(self, event: "Event", line: bytes) -> None:
        handle = _HANDLERS.get(event.type)
        if handle is not None and event.agent_id is None and not self._done.done():
            handle(self, event, line)

    def _on_user_message(self, event: "Event", _line: bytes) -> None:
        if event.data.message_id == self.id:
            self._begun = True
        elif self._begun and event.data.source is None and event.data.delivery != "steering":
            self._finish()  # the next prompt begins, so this one is answered

    def _on_warning(self, event: "Event", _line: bytes) -> None:
        if event.data.originating_message_id == self.id:
            self._begun = True

    def _on_withdrawn(self, event: "Event", _line: bytes) -> None:
        if event.data.message_id == self.id and not self._begun:
            self._finish(aborted=event.data.reason != "consumed")

    def _on_message(self, event: "Event", line: bytes) -> None:
        if self._begun:
            self._response = (event, line)

    def _on_error(self, event: "Event", _line: bytes) -> None:
        self._failure = event
        if not event.data.eligible_for_auto_switch:  # else another model may still be chosen
            self._finish(error=event)

    def _on_switched(self, event: "Event", _line: bytes) -> None:
        failure, self._failure = self._failure, None
        if failure is not None and event.data.response == "no":
            self._finish(error=failure)

    def _on_idle(self, event: "Event", _line: bytes) -> None:
        if self._begun or event.data.aborted:
            self._finish(end=event, aborted=bool(event.data.aborted))

    def _finish(
        self, *, end: "Event | None" = None, aborted: bool = False, error: "Event | None" = None
    ) -> None:
        self._leave()
        self._done.set_result(
            Answered(response=self._response, end=end, aborted=aborted, error=error)
        )


_HANDLERS = {
    "user.message": Request._on_user_message,
    "session.warning": Request._on_warning,
    "trimtab.prompt_withdrawn": Request._on_withdrawn,
    "assistant.message": Request._on_message,
    "session.error": Request._on_error,
    "auto_mode_switch.completed": Request._on_switched,
    "session.idle": Request._on_idle,
}


def handle_request(
    live: "LiveSession",
    prompt: Prompt | str,
    *,
    attachments: "Sequence[JsonObject]" = (),
    mode: Literal["immediate", "enqueue"] | None = None,
) -> Request:
    """Hand a prompt to a session: every front end does it here.

    An idle session begins to answer. A busy one, also one that waits for an answer of a person, is
    steered by the prompt, unless its mode is `enqueue`: then it waits for its turn.
    """
    if isinstance(prompt, str):
        prompt = Prompt(text=prompt, mode="immediate")
    return Request(
        live,
        msgspec.structs.replace(
            prompt, mode=mode or prompt.mode, attachments=(*prompt.attachments, *attachments)
        ),
    )
