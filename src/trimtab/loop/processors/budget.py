"""The budget: no model call is made that could go past the limit a person set."""

from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.loop.ledger import Estimate, Ledger, estimate_call

ANSWER = 1024
"""Output tokens to expect of a call whose service was given no limit."""
FAREWELL = 256
"""Output tokens kept back for the last answer."""

LEVELS = (0.5, 0.75, 0.9)

LEFT = (
    "<session_limits_status>\nRemaining session limits: {left}. Be frugal; avoid optional "
    "exploration and unnecessary tool calls.\n</session_limits_status>"
)
LAST = (
    "<session_limits_status>\nThe budget of this session is nearly spent: {spent}. This is your "
    "last answer, and no tools can be used in it. Say in a few sentences what is done, what is "
    "not, and how to go on.\n</session_limits_status>"
)


class Budget(Processor):
    """Reserves before each call, and spends what is left on one last answer without tools."""

    def __init__(self, ledger: Ledger, agent: str | None = None) -> None:
        self._ledger = ledger
        self._agent = agent
        self._told = 0.0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        """The model hears before each prompt of a person what is left."""
        if prompt.source == "user" and (left := self._ledger.describe_rest()):
            run.session.emit(
                UserMessage(
                    content="",
                    transformed_content=LEFT.format(left=left),
                    source="budget",
                )
            )
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        self._tell(run)
        prompt = estimate_prompt(run)
        price = run.agent.model.price
        call = estimate_call(price, prompt, run.agent.model.max_output_tokens or ANSWER)
        if self._ledger.fits(call, estimate_call(price, call.tokens, FAREWELL)):
            self._ledger.reserve(self._agent, call)
            return None
        return self._wind_down(run, estimate_call(price, prompt, FAREWELL))

    def _wind_down(self, run: Run, farewell: Estimate) -> Stop | None:
        spent = self._ledger.describe()
        stop = Stop(
            reason="budget",
            exit_code=5,
            message=f"Stopped at the budget: {spent} spent, and the next call needs about "
            f"{count(farewell.tokens, 'token')}; raise the limit and resume the session to go on.",
        )
        run.session.emit(SessionWarning(warning_type="budget", message=stop.message))
        if not run.total_turns or not self._ledger.fits(farewell):
            return stop
        self._ledger.reserve(self._agent, farewell)
        run.session.emit(
            UserMessage(
                content="",
                transformed_content=LAST.format(spent=spent),
                source="budget",
                interaction_id=run.interaction_id,
            )
        )
        run.stop, run.closing = stop, True
        return None

    def _tell(self, run: Run) -> None:
        """A remark when half, three quarters, nine tenths of a limit are spent."""
        share = self._ledger.share()
        level = max((level for level in LEVELS if share >= level), default=0.0)
        if level > self._told:
            self._told = level
            message = f"{level:.0%} of the budget is spent: {self._ledger.describe()}."
            run.session.emit(SessionInfo(info_type="budget", message=message))


def estimate_prompt(run: Run) -> int:
    """Tokens of the next prompt, as measured if it was measured."""
    if run.measured is not None:
        return run.measured.total
    conversation = run.session.conversation
    return (conversation.characters + len(conversation.system)) // 4
