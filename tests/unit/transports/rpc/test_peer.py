"""One connection, without a network."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.ids import new_id, timestamp
from trimtab.host.ports import ClientGone
from trimtab.transports.rpc.framing import FrameParser, frame
from trimtab.transports.rpc.peer import BACKLOG, Peer
from trimtab.transports.rpc.protocol import RpcError


class Pipe(asyncio.WriteTransport):
    """Keeps what is written; `unread` is how far the reader is behind."""

    def __init__(self) -> None:
        super().__init__()
        self.unread = 0
        self._parser = FrameParser(strict=True)
        self.messages: list[Any] = []

    def write(self, data: Any) -> None:
        for body in self._parser.feed(bytes(data)):
            assert isinstance(body, bytes)
            self.messages.append(json.loads(body))

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


async def never(peer: Peer, method: str, raw: msgspec.Raw) -> Any:
    await asyncio.Event().wait()


def make_peer(answer: Any = never) -> tuple[Peer, Pipe]:
    peer, pipe = Peer(answer, lambda _: None), Pipe()
    peer.use(pipe, strict=False)
    return peer, pipe


def event(*, ephemeral: bool) -> Event:
    return Event(
        type="session.info",
        data={"infoType": "x", "message": "y"},
        id=new_id(),
        timestamp=timestamp(),
        parent_id=None,
        ephemeral=ephemeral,
    )


async def test_a_client_that_is_behind_loses_ephemeral_events_and_no_durable_one() -> None:
    peer, pipe = make_peer()
    pipe.unread = BACKLOG + 1
    for sent in [event(ephemeral=True), event(ephemeral=False), event(ephemeral=True)]:
        peer.send_event("s", sent, encode(sent))
    await asyncio.sleep(0)
    told, stored = (message["params"]["event"] for message in pipe.messages)
    assert (told["type"], told["data"]["count"]) == ("trimtab.events_dropped", 1)
    assert stored["type"] == "session.info"
    assert "ephemeral" not in stored
    assert peer.dropped == 2
    pipe.unread = 0
    peer.send_event("s", sent, encode(sent))
    await asyncio.sleep(0)
    kinds = [message["params"]["event"]["type"] for message in pipe.messages[2:]]
    assert kinds == ["trimtab.events_dropped", "session.info"]


async def test_a_question_ends_with_the_client() -> None:
    peer, _ = make_peer()
    asking = asyncio.ensure_future(peer.ask("userInput.request", {}))
    await asyncio.sleep(0)
    peer.connection_lost(None)
    with pytest.raises(ClientGone):
        await asking


async def test_a_question_nobody_waits_for_any_more_is_taken_back() -> None:
    peer, pipe = make_peer()
    asking = asyncio.ensure_future(peer.ask("hooks.invoke", {}))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0)
    assert [message["method"] for message in pipe.messages] == ["hooks.invoke", "$/cancelRequest"]


async def test_the_clients_error_is_the_askers() -> None:
    peer, _ = make_peer()
    asking = asyncio.ensure_future(peer.ask("x", {}))
    await asyncio.sleep(0)
    reply = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such thing"}}
    peer.data_received(frame(json.dumps(reply).encode()))
    with pytest.raises(RpcError, match="no such thing"):
        await asking


async def test_a_request_can_be_cancelled() -> None:
    peer, pipe = make_peer()
    peer.data_received(frame(b'{"id":"a","method":"slow"}'))
    await asyncio.sleep(0)
    peer.data_received(frame(b'{"method":"$/cancelRequest","params":{"id":"a"}}'))
    for _ in range(3):
        await asyncio.sleep(0)
    assert pipe.messages[0]["error"]["code"] == -32800


@pytest.mark.parametrize("sent", ["7", "0", "-3", '"7"', '"a b"', "9007199254740993", "1.5"])
async def test_the_id_of_a_request_comes_back_as_it_was_sent(sent: str) -> None:
    async def pong(peer: Peer, method: str, raw: msgspec.Raw) -> Any:
        return {}

    written: list[bytes] = []

    class Bytes(Pipe):
        def write(self, data: Any) -> None:
            written.append(bytes(data))

    peer = Peer(pong, lambda _: None)
    peer.use(Bytes(), strict=False)
    peer.data_received(frame(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % sent.encode()))
    for _ in range(3):
        await asyncio.sleep(0)
    assert b'"id":%b,' % sent.encode() in b"".join(written)
