"""The `web_fetch` tool: reads a page of the web as text."""

import asyncio
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.web import Fetch, FetchProblem, Page
from trimtab.tools.description import describe
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output

LENGTH = 5000
LONGEST = 20_000
TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript")
NO_CHARSETS = frozenset(("punycode", "idna", "unicode_escape", "raw_unicode_escape"))
"""Codecs of Python that no page is written in; the first takes minutes for a large one."""
SUFFIXES = ("+json", "+xml", "yaml", "javascript", "x-sh", "toml")


async def fetch_nothing(url: str) -> Page:
    raise FetchProblem(f"This session is offline, so {url} is out of reach.")


class WebFetch:
    spec = ToolSpec(
        name="web_fetch",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "Address of the page"},
                "max_length": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"Characters to give at most: {LENGTH} unless said, ≤ {LONGEST}",
                },
                "start_index": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Character to begin with",
                },
                "raw": {"type": "boolean", "description": "Give HTML as it is"},
            },
            "required": ["url"],
        },
    )

    def __init__(self, fetch: Fetch = fetch_nothing) -> None:
        self._fetch = fetch

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        url = args["url"].strip()
        return [Access(kind="url", target=url, intention=f"Fetch {url}", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        url = args["url"].strip()
        if not url.lower().startswith(("http://", "https://")):
            return fail(f"{url!r} is no http or https address.", "Unsupported address")
        try:
            page = await self._fetch(url)
        except FetchProblem as problem:
            return fail(f"Failed to fetch {url}: {problem}")
        if page.moved_to:
            return fail(
                f"{url} redirects to another host: {page.moved_to}. Call web_fetch with that "
                "address if it is what you need.",
                "Redirects to another host",
            )
        if not is_text(page):
            size = len(page.data)
            return fail(f"{url} is no text but {page.kind or 'binary'} ({count(size, 'byte')}).")
        text = await asyncio.to_thread(render, page, args)
        return self._present(page, await limit_output(cut(text, page, args), ctx))

    def _present(self, page: Page, text: str) -> ToolResult:
        if page.status >= 400:
            return fail(f"{page.url} answered with status {page.status}.\n{text}")
        return ToolResult(text=text)


def is_text(page: Page) -> bool:
    if page.kind.startswith(TEXTUAL) or page.kind.endswith(SUFFIXES):
        return True
    return not page.kind and b"\0" not in page.data[:1024]


def render(page: Page, args: Args) -> str:
    text = decode(page)
    looks_html = page.kind in ("text/html", "application/xhtml+xml")
    if args.get("raw") or not looks_html:
        return text
    from trimtab.tools.web_fetch.markdown import to_markdown

    return to_markdown(text, page.url)


def decode(page: Page) -> str:
    """The text by the charset the server or the page names, else as UTF-8."""
    import re

    named = page.charset
    if not named and (found := re.search(rb"charset=[\"']?([\w-]+)", page.data[:2048])):
        named = found.group(1).decode("ascii", "replace")
    named = named if is_charset(named) else "utf-8"
    for encoding in (named, "utf-8-sig"):
        try:
            return page.data.decode(encoding)
        except (LookupError, ValueError):
            continue
    return page.data.decode(named, "replace")


def is_charset(encoding: str) -> bool:
    import codecs

    try:
        found = codecs.lookup(encoding)
        b"".decode(encoding)
    except (LookupError, ValueError):
        return False
    return found.name not in NO_CHARSETS


def cut(text: str, page: Page, args: Args) -> str:
    """The part that was asked for, and how to get the next one."""
    start = args.get("start_index", 0)
    end = start + min(args.get("max_length", LENGTH), LONGEST)
    if start >= len(text) > 0:
        return f"<the page has only {count(len(text), 'character')}>"
    shown = text[start:end] or "<the page has no text>"
    if end < len(text):
        shown += f"\n\n<{count(len(text) - end, 'more character')}; go on with start_index {end}>"
    elif not page.complete:
        shown += "\n\n<the page is too large: the rest of it was not fetched>"
    return shown


TOOL = WebFetch()
