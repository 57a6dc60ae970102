"""The `session_store_sql` tool: reads the index of past sessions."""

from collections.abc import Awaitable, Callable, Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.sql import Refusal
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.database import Database
from trimtab.tools.description import describe
from trimtab.tools.files import fail, system_failure
from trimtab.tools.output import limit_output
from trimtab.tools.statements import split_statements
from trimtab.tools.tables import describe_outcomes

READING = frozenset(("SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA"))
Prepare = Callable[[], Awaitable[tuple[str, int]]]
"""Updates the index; returns its path and the number of missing sessions. Raises `OSError`."""


class SessionStoreSql:
    spec = ToolSpec(
        name="session_store_sql",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "What this does, in a few words"},
                "query": {"type": "string", "description": "A SELECT, or several"},
                "source": {
                    "type": "string",
                    "enum": ["local", "cloud"],
                    "description": "Only `local`, the default: sessions of this machine",
                },
            },
            "required": ["description", "query"],
        },
    )

    def __init__(self, folder: str = "", prepare: Prepare | None = None) -> None:
        self._folder = folder
        self._prepare = prepare

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        """Declare a read, because the index contains conversations of other projects."""
        if not self._folder:
            return [Access(kind="none", mutates=False)]
        intention = "Search past sessions of all projects"
        return [Access(kind="read", target=self._folder, intention=intention, mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        if self._prepare is None or args.get("source") == "cloud":
            return fail("Only sessions of this machine can be searched: use source `local`.")
        statements = split_statements(args["query"].replace("\0", ""))
        if not statements:
            return fail("The query contains no statement.")
        for statement in statements:
            if statement.verb not in READING:
                verb = statement.verb
                return fail(f"{verb} is refused: past sessions can only be read, with SELECT.")
        try:
            path, missing = await self._prepare()
            outcomes = await Database(path, read_only=True).run(statements)
        except Refusal as refusal:
            return fail(f"SQL error: {refusal}")
        except OSError as error:
            return system_failure("Past sessions cannot be read", error)
        text = describe_outcomes(outcomes)
        if missing:
            text += f"\n\n<not searched yet: {count(missing, 'session')}; ask again to search more>"
        return ToolResult(text=await limit_output(text, ctx))


TOOL = SessionStoreSql()
