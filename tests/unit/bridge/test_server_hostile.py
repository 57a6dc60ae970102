"""Mangled requests and clients that leave, in numbers."""

import asyncio
from pathlib import Path

import pytest

from bridgekit import ROUTES, WIRES, bridged
from properties.bridge_fuzz import fuzz
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import ModelCall

LEAVING = 500


async def test_no_mangled_request_breaks_the_bridge(tmp_path: Path) -> None:
    for wire in WIRES:
        (tmp_path / wire).mkdir()
    assert await fuzz(900, 7, tmp_path) == []


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
async def test_nothing_is_left_after_many_clients_have_left(tmp_path: Path, wire: str) -> None:
    stall = {"text": "x" * 50, "break": {"how": "stall", "after": 6}, "repeat": "forever"}
    body = b'{"model":"scripted","stream":true,"messages":[{"role":"user","content":"Hi"}]}'
    async with bridged(tmp_path, wire, [stall]) as bridge:
        ended, count = asyncio.Event(), 0

        def watch(event: Event, _: bytes) -> None:
            nonlocal count
            count += isinstance(event.data, ModelCall)
            if count == LEAVING:
                ended.set()

        bridge.session.subscribe(watch)
        head = (
            f"POST {ROUTES['openai-chat']} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {bridge.key}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()

        async def leave() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", bridge.bridge.port)
            writer.write(head + body)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 50)
            writer.close()

        for _ in range(LEAVING // 50):
            await asyncio.gather(*(leave() for _ in range(50)))
        await asyncio.wait_for(ended.wait(), 50)
        assert [call.status for call in bridge.calls] == ["aborted"] * LEAVING
        assert bridge.server.usage.requests == LEAVING
