"""The budget: prevents model calls that could exceed the limits a person set."""

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.loop.ledger import Estimate, Ledger, estimate_call

REPLY_TOKENS = 1024
"""The expected output tokens of a call without an output limit."""
LAST_REPLY_TOKENS = 256
"""The output tokens reserved for the last reply."""

NOTICE_LEVELS = (0.5, 0.75, 0.9)

REMAINING = (
    "<session_limits_status>\nRemaining session limits: {left}. Be frugal; avoid optional "
    "exploration and unnecessary tool calls.\n</session_limits_status>"
)
LAST_REPLY = (
    "<session_limits_status>\nThe budget of this session is nearly spent: {spent}. This is your "
    "last answer, and no tools can be used in it. Say in a few sentences what is done, what is "
    "not, and how to go on.\n</session_limits_status>"
)


class Budget(Processor):
    """Reserves the cost of each call, and spends the rest on one last reply without tools."""

    def __init__(self, ledger: Ledger, agent: str | None = None) -> None:
        self._ledger = ledger
        self._agent = agent
        self._announced = 0.0
        self._prompted = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        self._prompted = self._prompted or prompt.source == "user"
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        self._tell_rest(run)
        self._announce_level(run)
        prompt = estimate_prompt(run)
        price = run.agent.model.price
        call = estimate_call(price, prompt, run.agent.model.max_output_tokens or REPLY_TOKENS)
        last_reply = estimate_call(price, call.tokens, LAST_REPLY_TOKENS)
        while not self._ledger.fits(call, last_reply):
            asked = await self._ledger.raise_limit()
            if not asked:
                last_call = estimate_call(price, prompt, LAST_REPLY_TOKENS)
                return self._wind_down(run, last_call, may_reply=asked is None)
        self._ledger.reserve(self._agent, call)
        return None

    def _tell_rest(self, run: Run) -> None:
        """Tell the model after each prompt of a person how much of the budget is left."""
        prompted, self._prompted = self._prompted, False
        if prompted and (left := self._ledger.describe_rest()):
            text = REMAINING.format(left=left)
            run.session.emit(UserMessage(content="", transformed_content=text, source="budget"))

    def _wind_down(self, run: Run, last_call: Estimate, *, may_reply: bool) -> Stop | None:
        """Stop, after one last reply unless a person refused to raise the limit."""
        spent = self._ledger.describe()
        stop = Stop(
            reason="budget",
            exit_code=ExitCode.BUDGET,
            message=f"Stopped at the budget: {spent} spent, and the next call needs about "
            f"{count(last_call.tokens, 'token')}; raise the limit and resume the session to go on.",
        )
        run.session.emit(SessionWarning(warning_type="budget", message=stop.message))
        if not may_reply or not run.total_turns or not self._ledger.fits(last_call):
            return stop
        self._ledger.reserve(self._agent, last_call)
        run.session.emit(
            UserMessage(
                content="",
                transformed_content=LAST_REPLY.format(spent=spent),
                source="budget",
                interaction_id=run.interaction_id,
            )
        )
        run.stop, run.closing = stop, True
        return None

    def _announce_level(self, run: Run) -> None:
        """Emit a notice each time the spending reaches one of the levels."""
        share = self._ledger.share()
        level = max((level for level in NOTICE_LEVELS if share >= level), default=0.0)
        if level > self._announced:
            self._announced = level
            message = f"{level:.0%} of the budget is spent: {self._ledger.describe()}."
            run.session.emit(SessionInfo(info_type="budget", message=message))


def estimate_prompt(run: Run) -> int:
    """Return the tokens of the next request: measured, or estimated from its length."""
    if run.measured is not None:
        return run.measured.total
    conversation = run.session.conversation
    return (conversation.characters + len(conversation.system)) // 4
