"""The `sql` tool: runs SQL on the database of the session, which has a to-do list."""

import os
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.sql import Refusal
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.database import Database
from trimtab.tools.description import describe
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output
from trimtab.tools.statements import split_statements
from trimtab.tools.tables import describe_outcomes

SESSION_NAMES = ("", "session", "main", "session.db")


class Sql:
    spec = ToolSpec(
        name="sql",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "What this does, in a few words"},
                "query": {"type": "string", "description": "One or more SQL statements"},
                "database": {"type": "string", "description": "Only `session`, the default"},
            },
            "required": ["description", "query"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        named = str(args.get("database") or "")
        if named not in SESSION_NAMES:
            return fail(f"There is no database {named!r}, only that of this session.")
        if "\0" in args["query"]:
            return fail("The query contains a NUL character, which SQL does not have.")
        statements = split_statements(args["query"])
        if not statements:
            return fail("The query contains no statement.")
        try:
            database = ctx.client_database or Database(ctx.database, prepare=read_schema())
            outcomes = await database.run(statements)
        except Refusal as refusal:
            return fail(f"SQL error: {refusal}")
        return ToolResult(text=await limit_output(describe_outcomes(outcomes), ctx))


def read_schema() -> str:
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


TOOL = Sql()
