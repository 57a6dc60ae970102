"""Long work is told in lines of its own."""

import asyncio

from trimtab.contracts.events.assistant import AssistantIdle
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.model import ModelCallStart
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.transports.headless.work_lines import WorkLines


class Heard:
    """The lines that were said; `next` waits for one more."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> str:
        async with asyncio.timeout(50):
            return await self.lines.get()


def event(data: EventData) -> Event:
    time = "2026-01-01T00:00:00Z"
    return Event(type=data.wire_name, id="1", timestamp=time, parent_id=None, data=data)


async def test_a_long_command_is_told_again_and_again_until_it_ends() -> None:
    heard = Heard()
    work = WorkLines(heard.lines.put_nowait, 0.01)
    work.on_event(event(ModelCallStart(turn_id="0", model="m")))
    assert await heard.next() == "  Working (the model, 0 s)"
    work.on_event(event(ToolExecutionStart(tool_call_id="c", tool_name="bash")))
    while await heard.next() != "  Working (bash, 0 s)":
        pass
    assert await heard.next() == "  Working (bash, 0 s)"
    work.on_event(event(ToolExecutionComplete(tool_call_id="c", success=True)))
    work.on_event(event(AssistantIdle()))
    while not heard.lines.empty():
        heard.lines.get_nowait()
    asyncio.get_running_loop().call_later(0.1, heard.lines.put_nowait, "silence")
    assert await heard.next() == "silence"
