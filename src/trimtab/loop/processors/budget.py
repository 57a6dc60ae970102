"""The budget: no model call is made that could go past the limit a person set."""

from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.loop.ledger import Estimate, Ledger, estimate_call

ANSWER = 1024
"""Output tokens to expect of a call whose service was given no limit."""
FAREWELL = 256
"""Output tokens kept back for the last answer."""

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
        self._sent: int | None = None

    async def before_request(self, run: Run) -> Stop | None:
        prompt = self._estimate_prompt(run)
        price = run.options.price
        call = estimate_call(price, prompt, run.options.max_output_tokens or ANSWER)
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
            f"{farewell.tokens:,} tokens; raise the limit and resume the session to go on.",
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

    def _estimate_prompt(self, run: Run) -> int:
        """Tokens of the next prompt: what the service counted last, and a guess for what is new."""
        session = run.session
        characters = session.conversation.characters
        counted, sent, self._sent = session.prompt_tokens, self._sent, characters
        if counted is not None and sent is not None:
            return counted + (characters - sent) // 4
        tools = sum(len(spec.description) + len(str(spec.parameters)) for spec in run.specs)
        return (characters + len(session.conversation.system) + tools) // 4
