"""The end of a server: clients on a port are let go."""

import asyncio

from rpckit import read_frame, request
from trimtab.contracts.options import SessionOptions
from trimtab.transports.rpc.listen import new_peer
from trimtab.transports.rpc.server import Server


async def test_clients_on_a_port_are_disconnected_after_the_shutdown() -> None:
    server = Server({}, defaults=SessionOptions(cwd="/"))
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: new_peer(server), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    first, writer = await asyncio.open_connection("127.0.0.1", port)
    second, other = await asyncio.open_connection("127.0.0.1", port)
    other.write(request("ping", 1))
    await read_frame(second)
    writer.write(request("runtime.shutdown", 1))
    assert (await read_frame(first))["result"] is None
    async with asyncio.timeout(50):
        assert await first.read() == b""
        assert await second.read() == b""
        await server.ended.wait()
    for stream in (writer, other):
        stream.close()
    listener.close()
