"""The `web_fetch` tool: what a model reads of a page."""

import time
from typing import Any

import pytest

from toolkit import Bench
from trimtab.contracts.tool import ToolResult
from trimtab.contracts.web import FetchProblem, Page
from trimtab.tools.web_fetch.markdown import to_markdown
from trimtab.tools.web_fetch.tool import WebFetch

URL = "https://example.com/docs/"


async def fetch(bench: Bench, page: Page | str, **args: Any) -> ToolResult:
    async def give(url: str) -> Page:
        if isinstance(page, str):
            raise FetchProblem(page)
        return page

    bench.tools["web_fetch"] = WebFetch(give)
    return await bench.call("web_fetch", **{"url": URL, **args})


def html(text: str, **fields: Any) -> Page:
    return Page(url=URL, status=200, data=text.encode(), kind="text/html", **fields)


async def test_html_becomes_markdown(bench: Bench) -> None:
    page = html(
        "<head><title>t</title><style>p{}</style></head><body><script>x()</script>"
        "<h1>Title</h1><p>Some  <b>bold</b>\n text &amp; <a href='../a'>a <i>link</i></a>.</p>"
        "<ul><li>one<li>two<ol><li>inner</ol></ul><pre><code>if x:\n    y()</code></pre>"
        "<table><tr><th>A<th>B</tr><tr><td>1</td><td>2</td></tr></table><p>end"
    )
    text = (await fetch(bench, page)).text
    assert text.startswith("# Title\n\nSome **bold** text & [a *link*](https://example.com/a).")
    assert "\n- one\n- two\n" in text
    assert "  1. inner" in text
    assert "```\nif x:\n    y()\n```" in text
    assert "| A | B" in text
    assert "x()" not in text
    assert text.endswith("end")


async def test_a_long_page_comes_in_parts(bench: Bench) -> None:
    page = Page(url=URL, status=200, data=b"0123456789" * 1000, kind="text/plain")
    first = (await fetch(bench, page)).text
    assert first.endswith("<5,000 more characters; continue with start_index 5000>")
    rest = (await fetch(bench, page, start_index=9990, max_length=100)).text
    assert rest == "0123456789"
    assert (await fetch(bench, page, start_index=20000)).text == (
        "<the page has only 10,000 characters>"
    )


async def test_raw_gives_the_html_itself(bench: Bench) -> None:
    assert (await fetch(bench, html("<p>x</p>"), raw=True)).text == "<p>x</p>"


@pytest.mark.parametrize(
    ("data", "charset"),
    [("Grüße".encode("latin-1"), "iso-8859-1"), ("Grüße".encode(), ""), ("Grüße".encode(), "odd")],
)
async def test_the_charset_of_the_page_is_used(bench: Bench, data: bytes, charset: str) -> None:
    page = Page(url=URL, status=200, data=data, kind="text/plain", charset=charset)
    assert (await fetch(bench, page)).text == "Grüße"


async def test_problems_and_statuses_are_failures_a_model_can_read(bench: Bench) -> None:
    failed = await fetch(bench, "nothing listens there")
    assert (failed.kind, failed.text) == (
        "failure",
        f"Failed to fetch {URL}: nothing listens there",
    )
    gone = await fetch(bench, Page(url=URL, status=404, data=b"gone", kind="text/plain"))
    assert (gone.kind, gone.text) == ("failure", f"{URL} answered with status 404.\ngone")
    elsewhere = await fetch(
        bench, Page(url="https://x.org/", status=302, moved_to="https://x.org/")
    )
    assert elsewhere.kind == "failure"
    assert "https://x.org/" in elsewhere.text


async def test_what_is_no_text_is_not_shown(bench: Bench) -> None:
    page = Page(url=URL, status=200, data=b"\x89PNG\0", kind="image/png")
    assert "is not text but image/png" in (await fetch(bench, page)).text


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "example.com", "data:text/html,x"]
)
async def test_other_protocols_are_refused(bench: Bench, url: str) -> None:
    assert "not an http or https address" in (await fetch(bench, html("x"), url=url)).text


async def test_it_asks_for_the_address(bench: Bench) -> None:
    access = bench.access("web_fetch", url=f" {URL} ")
    assert (access.kind, access.target, access.mutates) == ("url", URL, False)


@pytest.mark.parametrize(
    "text",
    [
        "<ul><li>" * 20_000,
        "<pre>\n" + " " * 300_000 + "x",
        "<a href=x>y" * 20_000 + "</a>" * 20_000,
        "<svg>" * 50_000 + "</object>" * 50_000,
        "<!--" * 100_000,
        "</" * 100_000,
    ],
)
def test_a_page_made_to_keep_a_reader_busy_is_read_in_time(text: str) -> None:
    began = time.process_time()
    assert len(to_markdown(text, URL)) < 10 * len(text)
    assert time.process_time() - began < 5


def test_what_cannot_be_read_in_time_is_left_out_and_said() -> None:
    text = to_markdown("<p>word</p>" * 50_000, URL, seconds=-1)
    assert text.endswith("the rest is left out>")


async def test_a_charset_that_is_none_is_read_as_utf_8(bench: Bench) -> None:
    page = Page(url=URL, status=200, kind="text/plain", data="grün".encode(), charset="punycode")
    assert (await fetch(bench, page)).text == "grün"
