"""Turns the reports of a runtime into events of the session; nothing else writes them."""

from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantMessageStart,
    AssistantReasoning,
    AssistantReasoningDelta,
    AssistantTurnEnd,
    AssistantTurnStart,
    AssistantUsage,
)
from trimtab.contracts.events.envelope import EventData, JsonObject
from trimtab.contracts.events.own import ModelCall, ToolRunning
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import INTERRUPTED
from trimtab.contracts.run import Run
from trimtab.runtimes.contract import (
    AgentRuntime,
    CallBegan,
    CallEnded,
    CallMade,
    Piece,
    Said,
    Spent,
)


class _Group:
    """A message, its calls without a result, and the results that wait for the message."""

    def __init__(self, message: AssistantMessage, calls: set[str]) -> None:
        self.message = message
        self.calls = calls
        self.results: list[ToolExecutionComplete] = []


class SessionEvents:
    """Writes one answer of a runtime to the log.

    A message follows the results of the calls before it, as in a conversation: one that arrives
    while such calls run waits for them, with the results of its own calls.
    """

    def __init__(self, run: Run, runtime: AgentRuntime, *, counts_tokens: bool) -> None:
        """`counts_tokens` is false if the bridge records the model calls."""
        self._run = run
        self._runtime = runtime
        self._counts_tokens = counts_tokens
        self.model = run.agent.model.name
        """The model, as the runtime names it."""
        self._in_turn = False
        self._message_id = ""
        self._reasoning_id = ""
        self._open: dict[str, str] = {}
        """The calls that run, by id, and the sub-agent that made them."""
        self._groups: list[_Group] = []
        """The last message that was written, and those that wait for its results."""

    @property
    def turn_id(self) -> str:
        return str(self._run.turn)

    def record(self, item: Piece | Said | Spent) -> None:
        """Record what a runtime said or spent."""
        if isinstance(item, Piece):
            self.show(item)
        elif isinstance(item, Said):
            self.say(item)
        else:
            self.spend(item)

    def begin_turn(self) -> None:
        """Record that a model call begins."""
        self.end_turn()
        for group in self._groups:  # calls that never ran
            group.calls.intersection_update(self._open)
        self._advance()
        run = self._run
        self._emit(AssistantTurnStart(turn_id=self.turn_id, interaction_id=run.interaction_id))
        self._in_turn = True

    def end_turn(self) -> None:
        if self._in_turn:
            self._in_turn = False
            self._emit(AssistantTurnEnd(turn_id=self.turn_id))
            self._run.turn += 1
            self._run.total_turns += 1

    def show(self, piece: Piece) -> None:
        """Publish a piece of an answer."""
        if piece.is_reasoning:
            self._reasoning_id = self._reasoning_id or new_id()
            delta = AssistantReasoningDelta(
                reasoning_id=self._reasoning_id, delta_content=piece.text
            )
            self._emit(delta)
            return
        if not self._message_id:
            self._message_id = new_id()
            self._emit(AssistantMessageStart(message_id=self._message_id))
        self._emit(AssistantMessageDelta(message_id=self._message_id, delta_content=piece.text))

    def say(self, said: Said) -> None:
        """Record a whole message."""
        if not self._in_turn and not said.parent:
            self.begin_turn()
        message_id, self._message_id = self._message_id or new_id(), ""
        reasoning_id, self._reasoning_id = self._reasoning_id or new_id(), ""
        message = AssistantMessage(
            message_id=message_id,
            content=said.text,
            tool_requests=[self._describe(call) for call in said.calls],
            reasoning_text=said.reasoning or None,
            interaction_id=self._run.interaction_id,
            model=self.model or None,
            turn_id=self.turn_id,
            originating_message_id=self._run.origin.id or None,
        )
        if said.reasoning:
            thought = AssistantReasoning(reasoning_id=reasoning_id, content=said.reasoning)
            self._emit(thought, said.parent)
        if said.parent:
            self._emit(message, said.parent)
            return
        self._groups.append(_Group(message, {call.id for call in said.calls}))
        if len(self._groups) == 1:
            self._emit(message)
        self._advance()

    def begin_call(self, began: CallBegan) -> None:
        """Record that a tool call runs; recording the same call again has no effect."""
        call = began.call
        if call.id in self._open:
            return
        if not began.parent and self._find(call.id) is None:  # no message named it
            self.say(Said(calls=(call,)))
        self._open[call.id] = began.parent
        name, args = self._runtime.rename(call)
        self._emit(
            ToolExecutionStart(
                tool_call_id=call.id,
                tool_name=name,
                arguments=args,
                model=self.model or None,
                turn_id=self.turn_id,
            ),
            began.parent,
        )
        self._emit(ToolRunning(tool_call_id=call.id), began.parent)

    def end_call(self, ended: CallEnded, *, code: str = "failure") -> None:
        """Record the result of a call; a call that nobody began is ignored."""
        if ended.id not in self._open:
            return
        parent = self._open.pop(ended.id)
        done = ToolExecutionComplete(
            tool_call_id=ended.id,
            success=not ended.failed,
            model=self.model or None,
            interaction_id=self._run.interaction_id,
            turn_id=self.turn_id,
            result=None if ended.failed else {"content": ended.text, "detailedContent": ended.text},
            error={"message": ended.text, "code": code} if ended.failed else None,
            shell_execution=None if ended.exit_code is None else {"exitCode": ended.exit_code},
        )
        group = self._find(ended.id)
        if group is not None and group is not self._groups[0]:
            group.results.append(done)
        else:
            self._emit(done, parent)
        if group is not None:
            group.calls.discard(ended.id)
            self._advance()

    def spend(self, spent: Spent) -> None:
        """Record the tokens of a model call, unless the bridge does."""
        if not self._counts_tokens:
            return
        usage, model = spent.usage, spent.model or self.model or self._runtime.name
        self._emit(
            AssistantUsage(
                model=model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                initiator="agent",
            )
        )
        self._emit(
            ModelCall(
                purpose="runtime",
                model=model,
                status="success",
                turn_id=self.turn_id,
                client=self._runtime.title,
                settles=spent.settles or None,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                cost_usd=spent.cost_usd,
            )
        )

    def close(self) -> None:
        """Record the calls that have no result as interrupted, and end the turn."""
        for call_id in list(self._open):
            interrupted = CallEnded(id=call_id, text=INTERRUPTED, failed=True)
            self.end_call(interrupted, code="interrupted")
        for group in self._groups:
            group.calls.clear()
        self._advance()
        self.end_turn()

    def _find(self, call_id: str) -> _Group | None:
        return next((group for group in self._groups if call_id in group.calls), None)

    def _advance(self) -> None:
        """Write the messages that wait for no result any more."""
        while self._groups and not self._groups[0].calls:
            del self._groups[0]
            if self._groups:
                self._emit(self._groups[0].message)
                for result in self._groups[0].results:
                    self._emit(result)

    def _describe(self, call: CallMade) -> JsonObject:
        name, args = self._runtime.rename(call)
        return {"toolCallId": call.id, "name": name, "arguments": args, "type": "function"}

    def _emit(self, data: EventData, parent: str = "") -> None:
        self._run.session.emit(data, agent_id=parent or None)
