"""Lists of tools that are kept between sessions: for whom, and how they are offered."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from mcpkit import keep, server
from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.host import McpHost
from trimtab.mcp.listed_tools import ListedTool, Listing
from trimtab.mcp.tool import ToolSupport
from trimtab.mcp.tool_cache import CachedServer, ToolCache

KNOWN = CachedServer(
    version="2025-11-25", listing=Listing((ListedTool(name="echo", parameters={}),))
)


def cache_of(folder: Path, account: str = "ann") -> ToolCache:
    return ToolCache(find_home({"COPILOT_HOME": str(folder)}), lambda _: account)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"args": ("other",)},
        {"env": {"KEY": "other"}},
        {"headers": {"Authorization": "other"}},
        {"tools": ("echo",)},
        {"url": "https://other.example/mcp"},
    ],
)
def test_a_list_is_for_the_same_configuration_only(tmp_path: Path, changed: Any) -> None:
    cache, config = cache_of(tmp_path), server(type="http", url="https://far.example/mcp")
    cache.write(config, KNOWN)
    assert cache.read(config) == KNOWN
    assert cache.read(msgspec.structs.replace(config, **changed)) is None


def test_a_list_of_a_server_elsewhere_is_for_the_same_account_only(tmp_path: Path) -> None:
    config = server(type="http", url="https://far.example/mcp")
    cache_of(tmp_path).write(config, KNOWN)
    assert cache_of(tmp_path, "bob").read(config) is None
    assert cache_of(tmp_path).read(config) == KNOWN


async def test_the_lists_of_several_known_servers_are_offered_together(tmp_path: Path) -> None:
    servers: dict[str, McpServer] = {name: server(name) for name in ("one", "two", "three")}
    cache = cache_of(tmp_path)
    for config in servers.values():
        cache.write(config, KNOWN)
    offers: list[int] = []
    access = cast(ServerAccess, None)  # nothing is contacted

    def offer() -> None:
        offers.append(len(host.tools))

    host = McpHost(access, ToolSupport(limit=keep), lambda _: None, offer, cache)
    await host.use(servers)
    assert offers == [3]
    await host.aclose()
