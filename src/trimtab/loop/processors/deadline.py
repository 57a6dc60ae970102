"""Uses the end of a session's time for last words, instead of being cut off in a tool call."""

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.loop.time_limit import TimeLimit

LAST_WORDS = (
    "<time_limit>\nThe time of this session is nearly over: {left:.0f} of {all:g} seconds are "
    "left. This is your last answer, and no tools can be used in it. Say in a few sentences what "
    "is done, what is not, and how to go on.\n</time_limit>"
)


class Deadline(Processor):
    """Makes the last model call before the deadline one without tools.

    A sub-agent stops instead, so that the main agent has the time for its last words.
    """

    def __init__(self, limit: TimeLimit) -> None:
        self.limit = limit

    async def before_request(self, run: Run) -> Stop | None:
        limit = self.limit
        if limit.left > limit.last_words:
            return None
        stop = end_at(limit.seconds)
        if run.agent.depth or limit.left <= 0:
            return stop
        if not run.closing:
            text = LAST_WORDS.format(left=limit.left, all=limit.seconds)
            message = "The time is nearly over; the agent gives its last words."
            run.session.emit(SessionWarning(warning_type="deadline_near", message=message))
            run.session.emit(UserMessage(content="", transformed_content=text, source="deadline"))
            run.closing, run.stop = True, stop
        return None


def end_at(seconds: float) -> Stop:
    """Return the stop of a run that reached its deadline."""
    return Stop(
        reason="deadline",
        exit_code=ExitCode.LIMIT,
        message=f"Stopped at the deadline of {seconds:g} s; raise --deadline to go on.",
    )
