"""Content that organizations exclude on GitHub, where GitHub's service gives the model."""

import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from clikit import Cli, Outcome, serving
from customizekit import write
from hookkit import tool_errors
from netkit import Listener, listening

DONE = {"text": "Done."}
RULES = [
    {
        "rules": [
            {"paths": ["/secrets/**"], "source": {"name": "octo/app", "type": "Repository"}},
            {"paths": ["{broken", "**/.env"], "source": {"name": "octo", "type": "Organization"}},
        ],
        "last_updated_at": 1,
    }
]


def view(path: str) -> dict[str, Any]:
    return {"tools": [{"name": "view", "arguments": {"path": path}}]}


@asynccontextmanager
async def github(status: int, body: bytes) -> AsyncIterator[Listener]:
    """GitHub itself, which says the same to every question."""

    async def answer(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async with listening(answer) as listener:
        yield listener


async def run(cli: Cli, listener: Listener, replies: list[Any], *flags: str) -> Outcome:
    write(cli.cwd / ".git/config", '[remote "origin"]\n\turl = git@github.com:octo/app.git\n')
    write(cli.cwd / ".git/HEAD", "ref: refs/heads/main\n")
    write(cli.cwd / "secrets/plan.txt", "hunter2")
    write(cli.cwd / "src/.env", "hunter2")
    async with serving([*replies, DONE]) as server:
        cli.env |= {
            "GH_TOKEN": "gho_0123456789",
            "COPILOT_API_URL": server.url,
            "COPILOT_DEBUG_GITHUB_API_URL": listener.url,
        }
        return await cli.ask("go", "--model", "scripted", "--disable-builtin-mcps", *flags)


@pytest.mark.proves("PERM-10")
async def test_github_is_asked_once_and_what_it_excludes_is_not_read(cli: Cli) -> None:
    paths = ("secrets/plan.txt", "src/.env", "src")
    async with github(200, json.dumps(RULES).encode()) as listener:
        outcome = await run(cli, listener, [view(path) for path in paths])
    first, second = tool_errors(outcome)
    assert "'/secrets/**' of the repository octo/app on GitHub forbids" in first
    assert "'**/.env' of the organization octo on GitHub forbids" in second
    (told,) = outcome.of("session.warning")
    assert "'{broken'" in told["message"]
    (head,) = listener.heads
    asked = urlsplit(head.split(" ")[1])
    assert asked.path == "/copilot_internal/content_exclusion"
    assert parse_qs(asked.query) == {"repos": ["https://github.com/octo/app"], "scope": ["all"]}


async def test_without_tools_github_is_not_asked(cli: Cli) -> None:
    async with github(200, b"[]") as listener:
        outcome = await run(cli, listener, [])
    assert outcome.code == 0
    assert listener.heads == []


async def test_what_is_excluded_there_is_not_attached(cli: Cli) -> None:
    async with github(200, json.dumps(RULES).encode()) as listener:
        write(cli.cwd / "secrets/plan.txt", "hunter2")
        outcome = await run(cli, listener, [], "--attachment", "secrets/plan.txt")
        assert len(listener.heads) == 1
    assert not outcome.of("user.message")[0].get("attachments")
    said = [one["message"] for one in outcome.of("session.warning")]
    assert any("plan.txt was not attached" in one for one in said)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [(404, b"{}", False), (500, b"oops", True), (200, b"no JSON", True), (200, b'{"a": 1}', True)],
)
async def test_a_failure_is_told(cli: Cli, status: int, body: bytes, told: bool) -> None:
    async with github(status, body) as listener:
        outcome = await run(cli, listener, [view("src/.env"), view("src/.env")])
        assert len(listener.heads) == 1
    warnings = [one["message"] for one in outcome.of("session.warning")]
    assert any("could not be fetched" in warning for warning in warnings) == told
    assert tool_errors(outcome) == []
