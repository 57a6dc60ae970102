"""Pages of the web: which addresses are contacted, where redirects lead, how much is read."""

import gzip
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping

import pytest

from netkit import Listener, listening
from trimtab.contracts.web import FetchProblem
from trimtab.providers.pages import PageFetcher, is_public

Converse = Callable[[Listener, StreamReader, StreamWriter], Awaitable[None]]


def answering(answers: Mapping[str, bytes]) -> Converse:
    """A server with an answer for each path."""

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        while not reader.at_eof():
            await listener.read(reader)
            path = listener.heads[-1].split(" ")[1]
            writer.write(answers[path])
            await writer.drain()

    return converse


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def moved(target: str) -> bytes:
    return answer(b"", f"Location: {target}", status="302 Found")


def anywhere(address: str) -> bool:
    return bool(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "no address",
    ],
)  # fmt: skip
def test_addresses_of_private_networks_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700::1111"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::1]"])
async def test_this_machine_is_never_contacted_however_it_is_written(host: str) -> None:
    async with listening(answering({"/": answer(b"secret")})) as server:
        with pytest.raises(FetchProblem, match="private network"):
            await PageFetcher({}).fetch(f"http://{host}:{server.port}/")
        assert server.connections == 0


async def test_a_page_is_fetched_with_its_kind_and_charset() -> None:
    page = answer(b"<p>hi", "Content-Type: Text/HTML; charset=UTF-8")
    async with listening(answering({"/a?b=c": page})) as server:
        found = await PageFetcher({}, accepts=anywhere).fetch(f"{server.url}/a?b=c")
    assert (found.status, found.data, found.kind, found.charset) == (
        *(200, b"<p>hi", "text/html", "utf-8"),
    )


async def test_a_redirect_on_the_same_host_is_followed() -> None:
    answers = {"/": moved("/there"), "/there": answer(b"here")}
    async with listening(answering(answers)) as server:
        found = await PageFetcher({}, accepts=anywhere).fetch(server.url)
        assert (found.data, found.url) == (b"here", f"{server.url}/there")


@pytest.mark.parametrize(
    "target", ["http://example.com/x", "//example.com/x", "http://127.0.0.1:1/x"]
)
async def test_a_redirect_elsewhere_is_reported_and_not_followed(target: str) -> None:
    async with listening(answering({"/": moved(target)})) as server:
        found = await PageFetcher({}, accepts=anywhere).fetch(server.url)
    assert found.moved_to.endswith(target)
    assert found.data == b""


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://x/", "javascript:1"])
async def test_a_redirect_to_another_protocol_is_a_problem(target: str) -> None:
    async with listening(answering({"/": moved(target)})) as server:
        with pytest.raises(FetchProblem, match="not a valid http"):
            await PageFetcher({}, accepts=anywhere).fetch(server.url)


async def test_redirects_in_a_circle_end() -> None:
    async with listening(answering({"/": moved("/")})) as server:
        with pytest.raises(FetchProblem, match="redirects more than 5 times"):
            await PageFetcher({}, accepts=anywhere).fetch(server.url)


async def test_a_page_that_is_too_large_is_cut() -> None:
    async with listening(answering({"/": answer(b"x" * 3000)})) as server:
        found = await PageFetcher({}, accepts=anywhere, max_bytes=1000).fetch(server.url)
    assert (len(found.data), found.complete) == (1000, False)


async def test_a_packed_page_is_unpacked_within_the_same_limit() -> None:
    packed = answer(gzip.compress(b"x" * 10_000_000), "Content-Encoding: gzip")
    async with listening(answering({"/": packed})) as server:
        found = await PageFetcher({}, accepts=anywhere, max_bytes=100_000).fetch(server.url)
    assert (found.data, found.complete) == (b"x" * 100_000, False)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async def silent(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as server:
        with pytest.raises(FetchProblem, match=r"did not answer within 0\.2 s|no answer|No answer"):
            await PageFetcher({}, accepts=anywhere, seconds=0.2).fetch(server.url)


async def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(FetchProblem, match="password"):
        await PageFetcher({}).fetch("https://me:secret@example.com/")
