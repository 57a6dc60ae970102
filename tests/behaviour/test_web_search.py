"""The web is searched where a person configured a service, within the rules about addresses."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clikit import Cli, serving

SEARCH = {"name": "web_search", "arguments": {"query": "tea & milk"}}
FOUND = {"results": [{"title": "Tea", "url": "https://tea.example/", "content": "A  drink."}]}


@asynccontextmanager
async def search_service(
    answer: bytes, status: str = "200 OK"
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A service on loopback; yields its address and the requests it got."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}"
        )
        writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/search?format=json&q={{query}}", asked
    finally:
        server.close()
        await server.wait_closed()


def configure(cli: Cli, url: str) -> None:
    value = {"url": url, "headers": {"x-key": "$SEARCH_KEY"}}
    (cli.home / "settings.json").write_text(json.dumps({"webSearch": value}))
    cli.env["SEARCH_KEY"] = "key-0123456789"


async def test_the_configured_service_is_asked_with_its_key(cli: Cli) -> None:
    async with search_service(json.dumps(FOUND).encode()) as (url, asked):
        configure(cli, url)
        async with serving([{"tools": [SEARCH]}, {"text": "x"}]) as server:
            outcome = await cli.use(server).ask("go")
    (done,) = outcome.of("tool.execution_complete")
    assert done["result"]["content"] == "Tea\nhttps://tea.example/\nA drink."
    assert asked[0].startswith(b"GET /search?format=json&q=tea%20%26%20milk ")
    assert b"x-key: key-0123456789" in asked[0]
    assert "key-0123456789" not in outcome.text


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (b"<html>", "200 OK", "did not answer in JSON"),
        (b"{}", "403 Forbidden", "status 403"),
        (b'{"results": "none"}', "200 OK", "Nothing was found"),
        (b'{"web": {"results": [{"url": 7}, 8]}}', "200 OK", "Nothing was found"),
    ],
)
async def test_what_is_no_answer_is_told(cli: Cli, answer: bytes, status: str, said: str) -> None:
    async with search_service(answer, status) as (url, _):
        configure(cli, url)
        async with serving([{"tools": [SEARCH]}, {"text": "x"}]) as server:
            outcome = await cli.use(server).ask("go")
    assert said in json.dumps(outcome.of("tool.execution_complete"))


@pytest.mark.parametrize("flags", [("--offline",), ("--feature", "DISABLE_WEB_TOOLS")])
async def test_web_tools_are_not_offered_if_they_are_switched_off(
    cli: Cli, flags: tuple[str, ...]
) -> None:
    configure(cli, "http://127.0.0.1:1/{query}")
    async with serving([{"text": "x"}, {"text": "x"}]) as server:
        await cli.use(server).ask("go")
        await cli.ask("go", *flags)
        on, off = (str(request.json["tools"]) for request in server.requests)
    assert "web_search" in on
    assert "web_search" not in off
    assert "web_fetch" not in off


async def test_rules_about_addresses_hold_and_wrong_settings_are_refused(cli: Cli) -> None:
    async with search_service(json.dumps(FOUND).encode()) as (url, asked):
        configure(cli, url)
        async with serving([{"tools": [SEARCH]}, {"text": "x"}]) as server:
            outcome = await cli.use(server).ask("go", "--deny-url", "127.0.0.1")
        assert not outcome.of("tool.execution_complete")[0]["success"]
        assert not asked
    configure(cli, "ftp://x")
    refused = await cli.run("-p", "go")
    assert refused.code == 2
    assert "`webSearch` is invalid" in refused.notes


async def test_the_service_is_among_the_addresses_that_could_be_contacted(cli: Cli) -> None:
    configure(cli, "https://search.example/?q={query}")
    listed = json.loads((await cli.run("net", "--json")).text)["destinations"]
    (found,) = [one for one in listed if "search.example" in one["address"]]
    assert "web_search" in found["why"]
