"""The `fetch_copilot_cli_documentation` tool: returns pages of our documentation."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.fetch_copilot_cli_documentation.pages import START, Pages
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output


class FetchDocumentation:
    spec = ToolSpec(
        name="fetch_copilot_cli_documentation",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "page": {"type": "string", "description": "A page of the list, `guides/hooks`"},
            },
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        pages = Pages.find()
        if pages is None:
            return fail("This installation has no documentation; `trimtab help` lists the flags.")
        wanted = args.get("page") or ""
        if not wanted:
            text = f"{pages.read(START)}\n\n# Pages\n\n{pages.contents()}"
        elif (name := pages.match(wanted)) is not None:
            text = pages.read(name)
        else:
            return fail(f"There is no page {wanted!r}. The pages are:\n{pages.contents()}")
        return ToolResult(text=await limit_output(text, ctx))


TOOL = FetchDocumentation()
