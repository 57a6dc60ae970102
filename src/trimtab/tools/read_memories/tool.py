"""The `read_memories` tool: returns the facts that earlier sessions stored."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.files import fail, system_failure
from trimtab.tools.memories import Memories, Memory
from trimtab.tools.output import limit_output


class ReadMemories:
    spec = ToolSpec(
        name="read_memories",
        description=describe(__file__),
        parameters={"type": "object", "properties": {}},
    )

    def __init__(self, memories: Memories | None = None) -> None:
        self._memories = memories

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        if self._memories is None:
            return fail("Memory is turned off.")
        try:
            parts = [
                show("About this repository", self._memories.read("repository")),
                show("About the user", self._memories.read("user")),
            ]
        except OSError as error:
            return system_failure("The facts cannot be read", error)
        text = "\n\n".join(filter(None, parts)) or "Nothing has been stored yet."
        return ToolResult(text=await limit_output(text, ctx))


def show(title: str, memories: Sequence[Memory]) -> str:
    if not memories:
        return ""
    lines = [
        f"- {memory.subject}: {memory.fact}"
        + (f" ({memory.citations})" if memory.citations else "")
        for memory in memories
    ]
    return "\n".join((f"{title}:", *lines))


TOOL = ReadMemories()
