"""Hooks that are posted to an address."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from hookkit import tool_errors, write_hooks
from trimtab.providers.http_server import Exchange, HttpRequest, HttpServer

DONE = {"text": "Done."}
ALLOWED = {"COPILOT_HOOK_ALLOW_LOCALHOST": "true", "HOOK_KEY": "abc", "OTHER": "not for you"}


@asynccontextmanager
async def answering(status: int, body: bytes) -> AsyncIterator[tuple[str, list[HttpRequest]]]:
    seen: list[HttpRequest] = []

    async def handle(exchange: Exchange) -> None:
        seen.append(exchange.request)
        if not status:
            await asyncio.Event().wait()
        await exchange.answer(status, body)

    server = HttpServer(handle)
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}/hook", seen
    finally:
        await server.stop()


async def run(cli: Cli, hook: dict[str, Any]) -> list[str]:
    write_hooks(cli, {"preToolUse": [{"type": "http", "timeoutSec": 2, **hook}]}, "user")
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        return tool_errors(await cli.use(server).ask("go", env=ALLOWED))


async def test_the_input_is_posted_and_the_answer_counts(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    body = json.dumps({"permissionDecision": "deny", "permissionDecisionReason": "far away"})
    async with answering(200, body.encode()) as (url, seen):
        headers = {"Authorization": "Bearer $HOOK_KEY", "X-Other": "[${OTHER}]"}
        hook = {"url": url, "headers": headers, "allowedEnvVars": ["HOOK_KEY"]}
        assert await run(cli, hook) == ["Denied by preToolUse hook: far away"]
    (request,) = seen
    assert request.method == "POST"
    assert json.loads(request.body)["toolArgs"]["command"] == "touch made"
    assert request.headers["authorization"] == "Bearer abc"
    assert request.headers["x-other"] == "[]"


FAILURES = [
    ("an error", 500, b"", "status 500"),
    ("a redirection", 302, b"", "status 302"),
    ("nonsense", 200, b"<html>", "not JSON"),
    ("silence", 0, b"", "2 s"),
]


@pytest.mark.parametrize(("_", "status", "body", "reason"), FAILURES, ids=[f[0] for f in FAILURES])
async def test_an_address_that_does_not_answer_well_denies(
    tmp_path: Path, _: str, status: int, body: bytes, reason: str
) -> None:
    cli = Cli(tmp_path)
    async with answering(status, body) as (url, _seen):
        (error,) = await run(cli, {"url": url})
    assert reason in error
    assert not (cli.cwd / "made").exists()


async def test_an_address_nobody_listens_at_denies(tmp_path: Path) -> None:
    async with answering(200, b"") as (url, _):
        pass
    (error,) = await run(Cli(tmp_path), {"url": url})
    assert "the hook failed" in error


async def test_an_empty_answer_is_no_objection(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with answering(204, b"") as (url, _):
        assert await run(cli, {"url": url}) == []
    assert (cli.cwd / "made").exists()
