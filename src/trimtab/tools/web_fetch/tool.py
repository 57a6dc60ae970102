"""The `web_fetch` tool: fetches a web page and returns it as text."""

import asyncio
import codecs
import re
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.web import Fetch, FetchProblem, Page
from trimtab.tools.description import describe
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output
from trimtab.tools.web_fetch.markdown import to_markdown

DEFAULT_LENGTH = 5000
MAX_LENGTH = 20_000
TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript")
NO_CHARSETS = frozenset(("punycode", "idna", "unicode_escape", "raw_unicode_escape"))
"""Python codecs that no page uses; punycode takes minutes for a large page."""
SUFFIXES = ("+json", "+xml", "yaml", "javascript", "x-sh", "toml")


async def fetch_nothing(url: str) -> Page:
    raise FetchProblem(f"This session is offline, so {url} cannot be fetched.")


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
                    "description": f"Characters; default {DEFAULT_LENGTH}, at most {MAX_LENGTH}",
                },
                "start_index": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "First character to return",
                },
                "raw": {"type": "boolean", "description": "Return HTML unchanged"},
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
            return fail(f"{url!r} is not an http or https address.", "Unsupported address")
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
            return fail(f"{url} is not text but {page.kind or 'binary'} ({count(size, 'byte')}).")
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
    return to_markdown(text, page.url)


def decode(page: Page) -> str:
    """Decode by the charset that the server or the page names, else as UTF-8."""
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
    try:
        found = codecs.lookup(encoding)
        b"".decode(encoding)
    except (LookupError, ValueError):
        return False
    return found.name not in NO_CHARSETS


def cut(text: str, page: Page, args: Args) -> str:
    """Return the requested part, and how to get the next one."""
    start = args.get("start_index", 0)
    end = start + min(args.get("max_length", DEFAULT_LENGTH), MAX_LENGTH)
    if start >= len(text) > 0:
        return f"<the page has only {count(len(text), 'character')}>"
    shown = text[start:end] or "<the page has no text>"
    if end < len(text):
        shown += (
            f"\n\n<{count(len(text) - end, 'more character')}; continue with start_index {end}>"
        )
    elif not page.complete:
        shown += "\n\n<the page is too large: the rest was not fetched>"
    return shown


TOOL = WebFetch()
