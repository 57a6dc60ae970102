import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from pathlib import Path

import pytest

from netkit import OK, Listener, listening, make_certificate
from trimtab.contracts.errors import ModelError
from trimtab.providers.connection import Timeouts
from trimtab.providers.http import HttpClient

BODY = [b'{"a":', b"1}"]


async def post(client: HttpClient, url: str, body: list[bytes] = BODY) -> tuple[int, bytes]:
    response = await client.request("POST", url, {"x-test": "1"}, body)
    try:
        return response.status, await response.read()
    finally:
        response.close()


async def answering(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
    while True:
        await listener.read(reader)
        writer.write(OK)
        await writer.drain()


async def test_connections_are_kept_and_used_again() -> None:
    client = HttpClient({})
    async with listening(answering) as server:
        for _ in range(3):
            assert await post(client, server.url) == (200, b"ok")
        assert server.connections == 1
        assert server.heads[0].startswith("POST / HTTP/1.1\r\nHost: 127.0.0.1")
        assert "Content-Length: 7\r\n" in server.heads[0]
        assert "x-test: 1\r\n" in server.heads[0]
        await client.aclose()


async def test_work_that_can_wait_is_done_while_the_service_has_the_request() -> None:
    order: list[str] = []
    sent = asyncio.Event()

    def on_sent() -> None:
        order.append("sent")
        sent.set()

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            await listener.read(reader)
            order.append("arrived")
            await asyncio.wait_for(sent.wait(), 50)
            sent.clear()
            writer.write(OK)

    client = HttpClient({})
    async with listening(converse) as server:
        for _ in range(2):  # on a new connection, and on a kept one
            response = await client.request("POST", server.url, {}, BODY, on_sent)
            order.append("answered")
            response.close()
        assert sorted(order[:2]) == sorted(order[3:5]) == ["arrived", "sent"]
        assert order[2] == order[5] == "answered"
        await client.aclose()


async def test_simultaneous_requests_have_connections_of_their_own() -> None:
    client = HttpClient({})
    async with listening(answering) as server:
        await asyncio.gather(*(post(client, server.url) for _ in range(5)))
        assert server.connections == 5
        await client.aclose()


async def test_the_names_of_this_machine_need_no_look_up() -> None:
    client = HttpClient({})
    async with listening(answering) as server:
        assert await post(client, f"http://model.localhost:{server.port}/v1") == (200, b"ok")
        await client.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_every_kind_of_body_is_read(answer: bytes) -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        for at in range(len(answer)):
            writer.write(answer[at : at + 1])
            await writer.drain()

    client = HttpClient({})
    async with listening(converse) as server:
        assert await post(client, server.url) == (200, b"ok")
        assert await post(client, server.url) == (200, b"ok")
        await client.aclose()


async def test_a_kept_connection_that_closes_without_a_byte_is_replaced_once() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(OK)
        await listener.read(reader)

    client = HttpClient({})
    async with listening(converse) as server:
        assert await post(client, server.url) == (200, b"ok")
        assert await post(client, server.url) == (200, b"ok")
        assert (server.connections, len(server.heads)) == (2, 3)
        await client.aclose()


async def test_a_new_connection_that_closes_without_a_byte_is_an_error() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)

    client = HttpClient({})
    async with listening(converse) as server:
        with pytest.raises(ModelError, match="without an answer; try again") as caught:
            await post(client, server.url)
        assert caught.value.category == "transport"
        assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
)
async def test_a_broken_answer_is_an_error_and_not_asked_for_again(answer: bytes) -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(OK)
        await listener.read(reader)
        writer.write(answer)

    client = HttpClient({})
    async with listening(converse) as server:
        await post(client, server.url)
        with pytest.raises(ModelError, match="cut off") as caught:
            await post(client, server.url)
        assert caught.value.category == "transport"
        assert len(server.heads) == 2
        await client.aclose()


async def test_what_arrived_before_the_break_is_given_first() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")

    client = HttpClient({})
    async with listening(converse) as server:
        response = await client.request("POST", server.url, {}, BODY)
        assert await response.receive() == b"hello"
        with pytest.raises(ModelError, match="cut off"):
            await response.receive()
        response.close()


async def test_silence_before_and_inside_an_answer_is_noticed() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        if len(listener.heads) == 2:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
        await reader.read()
        listener.gone.set()

    client = HttpClient({}, timeouts=Timeouts(first_byte=0.1, between_bytes=0.05))
    async with listening(converse) as server:
        for limit in ("0.1", "0.05"):
            server.gone.clear()
            with pytest.raises(ModelError, match=f"nothing for {limit} s") as caught:
                await post(client, server.url)
            assert (caught.value.category, caught.value.code) == ("transport", "stalled")
            await asyncio.wait_for(server.gone.wait(), 60)


async def test_an_answer_that_keeps_coming_is_not_a_stall() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
        for _ in range(20):
            writer.write(b"x")
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.01)

    client = HttpClient({}, timeouts=Timeouts(first_byte=0.1, between_bytes=0.1))
    async with listening(converse) as server:
        assert await post(client, server.url) == (200, b"x" * 20)
        await client.aclose()


async def test_a_consumer_that_takes_its_time_is_not_a_stall() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n")
        for _ in range(80):
            writer.write(b"x" * 100_000)
            await writer.drain()

    client = HttpClient({}, timeouts=Timeouts(first_byte=0.1, between_bytes=0.05))
    async with listening(converse) as server:
        response = await client.request("POST", server.url, {}, BODY)
        first = await response.receive()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await asyncio.wait([waiting], timeout=0.2)
        assert len(first) + len(await response.read()) == 8_000_000
        response.close()
        await client.aclose()


async def test_a_large_body_arrives_whole() -> None:
    received: list[int] = []

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        received.append(len(await listener.read(reader)))
        writer.write(OK)

    client = HttpClient({})
    async with listening(converse) as server:
        assert await post(client, server.url, [b"x" * 1000] * 9000) == (200, b"ok")
        assert received == [9_000_000]
        await client.aclose()


async def test_an_answer_before_the_body_was_read_ends_the_sending() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await listener.gone.wait()

    client = HttpClient({})
    async with listening(converse) as server:
        status, _ = await asyncio.wait_for(post(client, server.url, [b"x" * 1000] * 50_000), 60)
        assert status == 413
        server.gone.set()
        await client.aclose()


async def test_cancelling_closes_the_connection() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        started.set()
        await reader.read()
        listener.gone.set()

    started = asyncio.Event()
    client = HttpClient({})
    async with listening(converse) as server:
        task = asyncio.create_task(post(client, server.url))
        await asyncio.wait_for(started.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 60)


async def test_an_unfinished_answer_is_closed_not_kept() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
        await reader.read()
        listener.gone.set()

    client = HttpClient({})
    async with listening(converse) as server:
        response = await client.request("POST", server.url, {}, BODY)
        response.close()
        await asyncio.wait_for(server.gone.wait(), 60)


async def test_nobody_listening_is_said_with_what_to_do() -> None:
    async with listening(answering) as server:
        url = server.url
    with pytest.raises(ModelError, match=r"nothing listens there.*start the service") as caught:
        await post(HttpClient({}), url)
    assert caught.value.category == "transport"


async def test_offline_only_this_machine_may_be_contacted() -> None:
    client = HttpClient({"HTTPS_PROXY": "http://127.0.0.1:1"}, offline=True)
    with pytest.raises(ModelError, match="offline; use a model server on this machine") as caught:
        await post(client, "https://api.example.com/v1")
    assert caught.value.category == "invalid"
    async with listening(answering) as server:
        assert await post(client, server.url) == (200, b"ok")
        await client.aclose()


async def test_a_line_break_in_a_header_is_refused() -> None:
    with pytest.raises(ModelError, match="line break"):
        await HttpClient({}).request("POST", "http://127.0.0.1:1", {"a": "b\r\nc: d"}, BODY)


async def test_an_answer_larger_than_the_limit_is_refused() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    client = HttpClient({})
    async with listening(converse) as server:
        response = await client.request("POST", server.url, {}, BODY)
        with pytest.raises(ModelError, match="larger than"):
            await response.read(1 << 20)
        response.close()


async def test_plain_http_through_a_proxy_names_the_whole_address() -> None:
    async with listening(answering) as proxy:
        client = HttpClient({"HTTP_PROXY": f"http://user:p%40ss@127.0.0.1:{proxy.port}"})
        assert await post(client, "http://model.example/v1/x") == (200, b"ok")
        assert proxy.heads[0].startswith("POST http://model.example/v1/x HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in proxy.heads[0]
        await client.aclose()


async def test_a_proxy_that_refuses_is_said_with_what_to_do() -> None:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 407 Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with listening(converse) as proxy:
        client = HttpClient({"HTTPS_PROXY": proxy.url})
        with pytest.raises(ModelError, match=r"status 407.*correct HTTPS_PROXY"):
            await post(client, "https://model.example/")
        assert proxy.heads[0].startswith("CONNECT model.example:443 HTTP/1.1\r\n")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "model.example")


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def pump(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.mark.parametrize("variable", ["NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
async def test_https_goes_through_a_tunnel_and_trusts_extra_certificates(
    certificate: Path, variable: str
) -> None:
    async def tunnel(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", secure.port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
        await inner_writer.wait_closed()

    async with (
        listening(answering, tls=server_context(certificate)) as secure,
        listening(tunnel) as proxy,
    ):
        client = HttpClient({"HTTPS_PROXY": proxy.url, variable: str(certificate)})
        assert await post(client, "https://model.example/v1") == (200, b"ok")
        assert await post(client, "https://model.example/v1") == (200, b"ok")
        assert proxy.heads == [
            "CONNECT model.example:443 HTTP/1.1\r\nHost: model.example:443\r\n\r\n"
        ]
        assert secure.heads[0].startswith("POST /v1 HTTP/1.1\r\nHost: model.example\r\n")
        await client.aclose()
        await asyncio.wait_for(proxy.idle(), 60)


async def test_a_certificate_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async with listening(answering, tls=server_context(certificate)) as secure:
        with pytest.raises(ModelError, match=r"is not trusted.*NODE_EXTRA_CA_CERTS") as caught:
            await post(HttpClient({}), f"https://127.0.0.1:{secure.port}/")
        assert caught.value.category == "invalid"


async def test_a_missing_certificate_file_is_named() -> None:
    client = HttpClient({"NODE_EXTRA_CA_CERTS": "/nowhere/ca.pem"})
    async with listening(answering) as server:
        with pytest.raises(ModelError, match=r"/nowhere/ca.pem.*NODE_EXTRA_CA_CERTS"):
            await post(client, f"https://127.0.0.1:{server.port}/")
