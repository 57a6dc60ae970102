"""The scripted model server answers this machine only."""

import asyncio

import pytest

from trimtab.testing import ModelServer, Script


async def get(server: ModelServer, headers: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"GET /v1/models HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode())
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer.decode().split("\r\n")[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: 127.0.0.1:1234\r\n", "200"),
        ("Host: localhost\r\n", "200"),
        ("Host: [::1]:99\r\n", "200"),
        ("Host: localhost\r\nOrigin: http://localhost:3000\r\n", "200"),
        ("Host: evil.example\r\n", "403"),
        ("Host: localhost.evil.example\r\n", "403"),
        ("Host: 127.0.0.1.evil.example\r\n", "403"),
        ("Host: 127.0.0.1@evil.example\r\n", "403"),
        ("Host: \r\n", "403"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", "403"),
        ("Host: localhost\r\nOrigin: null\r\n", "403"),
    ],
)
async def test_a_request_for_or_from_elsewhere_is_refused(headers: str, status: str) -> None:
    async with ModelServer(Script.of(["done"])) as server:
        assert status in await get(server, headers)
