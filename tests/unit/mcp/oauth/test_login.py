"""A sign-in and the connections around it."""

import asyncio
from urllib.request import urlopen

import pytest

from mcpkit import server
from oauthkit import serving_sign_in
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.login import Login
from trimtab.providers.http import HttpClient


async def test_no_connection_is_open_while_the_person_signs_in() -> None:
    """A connection has a time limit of its own, which is shorter than that of a person."""
    order: list[str] = []
    loop = asyncio.get_running_loop()
    fetched: set[asyncio.Future[object]] = set()

    def fetch(url: str) -> None:
        with urlopen(url, timeout=50) as answer:
            answer.read()

    def show(url: str) -> None:
        order.append("shown")
        fetched.add(loop.run_in_executor(None, fetch, url))

    async with serving_sign_in() as peer:
        http = HttpClient({})
        login = Login(server(type="http", url=peer.url), http, show)

        async def connect() -> str:
            order.append("connecting")
            if not await login.token():
                with pytest.raises(ServerProblem) as refused:
                    await login.renew(401, "Bearer", "")
                assert refused.value.needs_auth
            order.append("closed")
            return await login.token()

        assert (await login.run(connect)).startswith("access-token")
        await asyncio.gather(*fetched)
        await http.aclose()
    assert order == ["connecting", "closed", "shown", "connecting", "closed"]


async def test_a_server_that_refuses_every_token_ends_it() -> None:
    async with serving_sign_in() as peer:
        http = HttpClient({})
        loop = asyncio.get_running_loop()
        fetched: set[asyncio.Future[object]] = set()
        login = Login(
            server(type="http", url=peer.url),
            http,
            lambda url: fetched.add(loop.run_in_executor(None, lambda: urlopen(url).close())),
        )

        async def connect() -> None:
            with pytest.raises(ServerProblem):
                await login.renew(401, "Bearer", await login.token())

        with pytest.raises(ServerProblem, match="after 3 sign-ins; ask who runs it"):
            await login.run(connect)
        await asyncio.gather(*fetched)
        await http.aclose()
        assert peer.logins == 3
