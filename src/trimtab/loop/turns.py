"""The inner loop: calls the model and runs the tools it asks for, until it asks for none."""

from trimtab.contracts.events.assistant import AssistantTurnEnd, AssistantTurnStart
from trimtab.contracts.ids import new_id
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.execute import execute
from trimtab.loop.prompt import record_prompt
from trimtab.loop.sample import sample


async def respond(run: Run, prompt: Prompt) -> Stop:
    """Answer one prompt. Every turn that starts also ends, whatever happens in it."""
    run.interaction_id, run.turn, run.stop, run.closing = new_id(), 0, None, False
    if not run.pending_calls:
        record_prompt(run, prompt, delivery="queued" if run.total_turns else "idle")
    while run.agent.responder is None:
        turn_id = str(run.turn)
        run.session.emit(AssistantTurnStart(turn_id=turn_id, interaction_id=run.interaction_id))
        try:
            stop = await take_turn(run)
        finally:
            run.session.emit(AssistantTurnEnd(turn_id=turn_id))
        run.turn, run.total_turns = run.turn + 1, run.total_turns + 1
        if stop is not None:
            return stop
    return await run.agent.responder(run)


async def take_turn(run: Run) -> Stop | None:
    """Make one model call and run its tool calls; return a reason to stop, if there is one."""
    calls, run.pending_calls = run.pending_calls, ()
    if not calls:
        for processor in run.agent.acting["before_request"]:
            if (stop := await processor.before_request(run)) is not None:
                return stop
        calls = (await sample(run)).message.tool_calls
        if run.closing or not calls:
            return run.stop or Stop(reason="end_turn")
    results = await execute(run, calls)
    if any(result.kind == "rejected" for result in results):
        return Stop(reason="rejected", message="A tool call was rejected.")
    return run.stop
