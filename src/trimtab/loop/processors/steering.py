"""Steering: adds prompts sent while the agent works before its next model call."""

from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.loop.drain import admit
from trimtab.loop.prompt import record_prompt


class Steering(Processor):
    async def before_request(self, run: Run) -> Stop | None:
        while run.turn and (prompt := run.inbox.take_immediate()) is not None:
            if (admitted := await admit(run, prompt)) is not None:
                record_prompt(run, admitted, delivery="steering")
        return None
