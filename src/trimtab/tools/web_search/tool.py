"""The `web_search` tool: asks the search service that the person configured."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.web import Fetch, FetchProblem, Page
from trimtab.tools.description import describe
from trimtab.tools.files import fail

MAX_RESULTS = 10
MAX_TEXT = 400
LISTS = ("results", "items", "organic", "organic_results", "webPages", "value", "web", "data")
"""Fields in which services put their list of results, or an object with it."""
TITLES, ADDRESSES = ("title", "name"), ("url", "link", "href")
TEXTS = ("content", "description", "snippet", "text")


async def fetch_nothing(_url: str) -> Page:
    raise FetchProblem("No search service is configured.")


class WebSearch:
    """`url` is the service's address with `{query}` in it."""

    spec = ToolSpec(
        name="web_search",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )

    def __init__(self, url: str = "", fetch: Fetch = fetch_nothing) -> None:
        self._url = url
        self._fetch = fetch

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        url = self._fill(args)
        intention = f"Search the web for {args['query']}"
        return [Access(kind="url", target=url, intention=intention, mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        try:
            page = await self._fetch(self._fill(args))
        except FetchProblem as problem:
            return fail(f"The search failed: {problem}")
        if page.status != 200:
            return fail(f"The search service answered with status {page.status}; tell the user.")
        try:
            content = msgspec.json.decode(page.data)
        except msgspec.DecodeError:
            return fail("The search service did not answer in JSON; tell the user.")
        rows = [describe_result(result) for result in find_results(content)]
        shown = "\n\n".join(row for row in rows[:MAX_RESULTS] if row)
        return ToolResult(text=shown or "Nothing was found.")

    def _fill(self, args: Args) -> str:
        return self._url.replace("{query}", quote(args["query"], safe=""))


def find_results(content: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the results of an answer, wherever the service puts its list."""
    if isinstance(content, list):
        yield from (result for result in content if isinstance(result, dict))
    elif isinstance(content, dict) and depth < 3:
        for name in LISTS:
            if name in content:
                yield from find_results(content[name], depth + 1)
                return


def describe_result(result: dict[str, Any]) -> str:
    title, address, text = (_first(result, names) for names in (TITLES, ADDRESSES, TEXTS))
    return "\n".join(filter(None, (title, address, text[:MAX_TEXT]))) if address else ""


def _first(result: dict[str, Any], names: Sequence[str]) -> str:
    found = (result.get(name) for name in names)
    return next((" ".join(value.split()) for value in found if isinstance(value, str)), "")


TOOL = WebSearch()
