"""The `store_memory` tool: stores a fact for later sessions."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.files import fail, system_failure
from trimtab.tools.memories import Memories, MemoriesFull, Memory, Scope

MAX_FACT = 2000


class StoreMemory:
    spec = ToolSpec(
        name="store_memory",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "What it is about, in a few words"},
                "fact": {"type": "string", "description": "The fact, in one or two sentences"},
                "citations": {"type": "string", "description": "Where it comes from: path:line"},
                "reason": {"type": "string", "description": "Why it will help later"},
                "scope": {
                    "type": "string",
                    "enum": ["repository", "user"],
                    "description": "What it is about; default: the repository",
                },
            },
            "required": ["subject", "fact"],
        },
    )

    def __init__(self, memories: Memories | None = None) -> None:
        self._memories = memories

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        detail = {"subject": args["subject"], "citations": args.get("citations", "")}
        intention = f"Remember: {args['subject']}"
        return [Access(kind="memory", target=args["fact"], intention=intention, detail=detail)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        if self._memories is None:
            return fail("Memory is turned off.")
        if len(args["fact"]) > MAX_FACT:
            return fail(f"The fact is longer than {MAX_FACT} characters: shorten it.")
        scope: Scope = args.get("scope", "repository")
        if not self._memories.repository:
            scope = "user"
        texts = {name: args.get(name, "") for name in ("subject", "fact", "citations", "reason")}
        try:
            added = self._memories.add(scope, Memory(**texts))
        except MemoriesFull:
            return fail("There is no room for more facts; the user can remove old ones.")
        except OSError as error:
            return system_failure("The fact was not stored", error)
        return ToolResult(text="Memory stored." if added else "This fact is already stored.")


TOOL = StoreMemory()
