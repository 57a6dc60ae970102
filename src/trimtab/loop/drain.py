"""The outer loop: answers queued prompts in order, and asks processors before a run stops."""

from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.idle import settle
from trimtab.loop.prompt import next_prompt
from trimtab.loop.turns import respond


async def drain(run: Run) -> Stop:
    """Answer all queued prompts, then emit the idle events; return why the last run ended."""
    stop = await answer(run)
    await settle(run, stop)
    return stop


async def answer(run: Run) -> Stop:
    """Answer all queued prompts; return why the last run ended."""
    stop = Stop(reason="end_turn")
    while not stop.exit_code and (prompt := next_prompt(run)) is not None:
        if (admitted := await admit(run, prompt)) is None:
            continue
        stop = await respond(run, admitted)
        if stop.reason == "end_turn":
            stop = await confirm_stop(run, stop)
    return stop


async def admit(run: Run, prompt: Prompt) -> Prompt | None:
    """Pass a prompt through `on_prompt`; return None if a processor handled it itself."""
    current = prompt
    try:
        for processor in run.agent.acting["on_prompt"]:
            if (changed := await processor.on_prompt(run, current)) is None:
                run.inbox.consume(prompt)
                return None
            current = changed
    except BaseException:
        run.inbox.give_back(prompt)
        raise
    return current


async def confirm_stop(run: Run, stop: Stop) -> Stop:
    """Ask the processors whether the run may stop; the first that objects decides."""
    for processor in run.agent.acting["before_stop"]:
        verdict = await processor.before_stop(run, stop)
        if isinstance(verdict, Prompt):
            run.inbox.put(verdict, front=True)
            return stop
        if verdict is not None:
            return verdict
    return stop
