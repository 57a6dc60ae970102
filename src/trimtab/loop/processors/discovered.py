"""Sends the model the instructions for a path when a tool first accesses that path."""

from collections.abc import Callable, Sequence

from trimtab.contracts.customization import Instruction
from trimtab.contracts.events.system import SystemNotification
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult

Touch = Callable[[str], Sequence[Instruction]]
"""Returns the instructions for a path that have not been returned before."""


class DiscoveredInstructions(Processor):
    """Emits each new instruction as a `system.notification` after the tool call."""

    def __init__(self, touch: Touch, render: Callable[[Instruction], str]) -> None:
        self._touch = touch
        self._render = render

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        for access in pending.touches(run):
            if access.kind in ("read", "write") and access.target:
                for instruction in self._touch(access.target):
                    self._announce(run, pending.call.name, access.target, instruction)
        return result

    def _announce(self, run: Run, tool: str, path: str, instruction: Instruction) -> None:
        content = f"<system_notification>\n{self._render(instruction)}\n</system_notification>"
        kind = {
            "type": "instruction_discovered",
            "sourcePath": instruction.paths[0],
            "triggerFile": path,
            "triggerTool": tool,
        }
        if instruction.description:
            kind["description"] = instruction.description
        run.session.emit(SystemNotification(content=content, kind=kind))
