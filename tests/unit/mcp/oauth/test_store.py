"""Sign-ins to MCP servers that are kept in memory."""

import asyncio

from trimtab.contracts.customization import McpServer
from trimtab.mcp.oauth.store import Grant, MemoryGrantStore


def server(url: str) -> McpServer:
    return McpServer(name="sea", source="sdk", type="http", url=url)


async def test_sign_ins_in_memory_belong_to_one_store_and_one_address() -> None:
    mine, other = MemoryGrantStore(), MemoryGrantStore()
    sea, lake = server("https://sea.example"), server("https://lake.example")
    grant = Grant(id="one", access_token="token")
    mine.check(sea)
    assert mine.changed(sea) == 0
    mine.write(sea, grant)
    assert (mine.read(sea), mine.identify(sea)) == (grant, "one")
    assert mine.changed(sea) > 0
    assert (mine.read(lake), other.read(sea)) == (None, None)
    assert [mine.delete(sea), mine.delete(sea)] == [True, False]
    assert mine.read(sea) is None


async def test_one_task_at_a_time_renews_a_sign_in_in_memory() -> None:
    store, sea = MemoryGrantStore(), server("https://sea.example")
    inside: list[int] = []

    async def renew(number: int) -> None:
        async with store.lock(sea):
            inside.append(number)
            await asyncio.sleep(0)
            inside.append(number)

    await asyncio.gather(renew(1), renew(2))
    assert inside == [1, 1, 2, 2]
