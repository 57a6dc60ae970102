"""The end of a run: announces that the agent is idle, and the session if nothing else works."""

from trimtab.contracts.events.assistant import AssistantIdle
from trimtab.contracts.events.session import SessionIdle
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Run


async def settle(run: Run, stop: Stop, *, aborted: bool | None = None) -> None:
    """Emit the idle events. While something works in the background, the session is not idle."""
    if run.agent.before_idle is not None:
        await run.agent.before_idle(run, stop)
    run.session.emit(AssistantIdle(aborted=aborted))
    is_busy = run.agent.has_background_work
    if aborted or is_busy is None or not is_busy():
        run.session.emit(SessionIdle(aborted=aborted, mode=run.agent.mode))
