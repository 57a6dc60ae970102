"""The hosts a sandboxed command may reach: patterns, addresses, the proxy."""

import asyncio
import contextlib
import os
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit import OK, Listener, listening
from toolkit import Bench, open_bench
from trimtab.workspace.sandbox import detection
from trimtab.workspace.sandbox.confinement import Confinement, Refusal
from trimtab.workspace.sandbox.hosts import build_list, canonical, parse_pattern
from trimtab.workspace.sandbox.policy import SandboxPolicy
from trimtab.workspace.sandbox.proxy import BadRequest, FilteringProxy, parse_head

FOUND = detection.detect(os.environ)


def reaches(patterns: Sequence[str], host: str, port: int, denied: Sequence[str] = ()) -> bool:
    try:
        build_list(patterns, denied).find(canonical(host), port)
    except PermissionError:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "host", "port", "expected"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 80, True),
        ("example.com", "example.com", 22, False),
        ("example.com", "sub.example.com", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("example.com", "example.com.evil.net", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("example.com:*", "example.com", 22, True),
        ("*", "anything.net", 443, True),
        ("[::1]:80", "[0:0:0:0:0:0:0:1]", 80, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, host: str, port: int, expected: bool) -> None:
    assert reaches([pattern], host, port) is expected


@pytest.mark.parametrize(
    "text", ["", "http://x.com", "a b", "x.com:0", "x.com:99999", "a/b", "-*", "*x"]
)
def test_what_is_no_host_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|port"):
        parse_pattern(text)


def test_denied_wins_over_allowed_on_every_port() -> None:
    assert not reaches(["*:*"], "evil.com", 8080, ["evil.com"])
    assert not reaches(["*:*"], "a.evil.com", 8080, ["*.evil.com"])
    assert reaches(["*:*"], "good.com", 8080, ["evil.com"])


@pytest.mark.parametrize(
    ("pattern", "address", "allowed"),
    [
        ("*.example.com", "93.184.216.34", True),
        ("*.example.com", "10.0.0.7", False),
        ("git.example.com", "10.0.0.7", True),
        ("git.example.com", "127.0.0.1", False),
        ("git.example.com", "169.254.169.254", False),
        ("git.example.com", "0.0.0.0", False),
        ("git.example.com", "::1", False),
        ("git.example.com", "::ffff:127.0.0.1", False),
        ("git.example.com", "64:ff9b::7f00:1", False),
        ("git.example.com", "2002:7f00:1::", False),
        ("git.example.com", "fe80::1", False),
        ("*", "2001:4860:4860::8888", True),
        ("*", "fd00::1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
    ],
)
def test_a_name_must_not_lead_into_this_machine_or_network(
    pattern: str, address: str, allowed: bool
) -> None:
    hosts = build_list([pattern])
    with contextlib.nullcontext() if allowed else pytest.raises(PermissionError):
        hosts.check_address(hosts.allowed[0], address, 443)


@given(st.binary(max_size=400))
def test_no_request_makes_the_reader_fail_in_another_way(data: bytes) -> None:
    for head in (data, b"GET http://" + data, b"CONNECT " + data + b" HTTP/1.1\r\n\r\n"):
        with contextlib.suppress(BadRequest):
            wanted = parse_head(head)
            assert canonical(f"[{wanted.host}]" if ":" in wanted.host else wanted.host)


class Client:
    """A client of a proxy that listens on a socket of this machine."""

    def __init__(self, port: int, refused: list[tuple[str, int, str]]) -> None:
        self._port = port
        self.refused = refused

    async def ask(self, text: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(text.replace("\n", "\r\n").encode())
        try:
            async with asyncio.timeout(60):
                return (await reader.read()).decode()
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def proxying(
    *patterns: str, names: dict[str, list[str]] | None = None
) -> AsyncIterator[Client]:
    refused: list[tuple[str, int, str]] = []

    async def look_up(host: str, port: int) -> Sequence[str]:
        return (names or {}).get(host, [host])

    listener = socket.create_server(("127.0.0.1", 0))
    proxy = FilteringProxy(build_list(patterns), lambda *refusal: refused.append(refusal), look_up)
    proxy.serve(listener)
    try:
        yield Client(listener.getsockname()[1], refused)
    finally:
        proxy.close()


async def greet(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
    body = await listener.read(reader)
    writer.write(OK + body)
    await writer.drain()


async def test_a_request_is_passed_on_as_the_server_expects_it() -> None:
    async with listening(greet) as server, proxying(f"127.0.0.1:{server.port}") as client:
        said = await client.ask(
            f"POST http://127.0.0.1:{server.port}/a?b HTTP/1.1\nHost: 127.0.0.1:{server.port}\n"
            "Proxy-Authorization: secret\nX-Own: 1\nContent-Length: 3\n\nabc"
            "GET /second HTTP/1.1\nHost: other\n\n"
        )
    assert said.endswith("okabc")
    assert server.heads[0].startswith("POST /a?b HTTP/1.1\r\n")
    assert "X-Own: 1" in server.heads[0]
    assert "secret" not in server.heads[0]
    assert len(server.heads) == 1


async def test_a_body_in_chunks_arrives_and_nothing_behind_it() -> None:
    got = bytearray()

    async def take(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.extend(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(OK)
        await writer.drain()
        writer.write_eof()
        got.extend(await reader.read())

    async with listening(take) as server, proxying(f"127.0.0.1:{server.port}") as client:
        await client.ask(
            f"PUT http://127.0.0.1:{server.port}/ HTTP/1.1\nTransfer-Encoding: chunked\n\n"
            "3;x=y\nabc\n0\nTrailer: x\n\nGET /second HTTP/1.1\n\n"
        )
    assert bytes(got) == b"3\r\nabc\r\n0\r\n\r\n"


async def test_a_tunnel_carries_bytes_both_ways() -> None:
    async with listening(greet) as server, proxying(f"127.0.0.1:{server.port}") as client:
        said = await client.ask(
            f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\n\nGET / HTTP/1.1\nContent-Length: 2\n\nhi"
        )
    assert said.startswith("HTTP/1.1 200 ")
    assert said.endswith("okhi")


async def test_a_name_that_leads_to_this_machine_is_refused_with_the_reason() -> None:
    async with listening(greet) as server:
        names = {"rebound.example": ["93.184.216.34", "127.0.0.1"]}
        async with proxying(f"rebound.example:{server.port}", names=names) as client:
            said = await client.ask(f"GET http://rebound.example:{server.port}/ HTTP/1.1\n\n")
    assert said.startswith("HTTP/1.1 403 ")
    assert "127.0.0.1 is this machine's" in said
    assert client.refused[0][:2] == ("rebound.example", server.port)
    assert server.connections == 0


@pytest.mark.parametrize(
    "text",
    [
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "GET http://127.0.0.1:PORT/ HTTP/1.1\nHost: evil.example\n\n",
        "GET http://user@127.0.0.1:PORT/ HTTP/1.1\n\n",
        "GET https://127.0.0.1:PORT/ HTTP/1.1\n\n",
        "GET file:///etc/passwd HTTP/1.1\n\n",
        "CONNECT 127.0.0.1 HTTP/1.1\n\n",
        "CONNECT 127.0.0.1:PORT@evil:80 HTTP/1.1\n\n",
        "GET http://127.0.0.1:PORT/ HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
        "GET http://127.0.0.1:PORT/ HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\n",
        "GET http://127.0.0.1:PORT/ HTTP/1.1\nX: 1\n Y: 2\n\n",
        "nonsense\n\n",
    ],
)
async def test_what_is_no_clear_request_for_one_host_is_refused(text: str) -> None:
    async with listening(greet) as server, proxying(f"127.0.0.1:{server.port}") as client:
        said = await client.ask(text.replace("PORT", str(server.port)))
    assert said.startswith("HTTP/1.1 403 ")
    assert server.connections == 0


async def test_a_host_that_does_not_answer_is_no_refusal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with proxying(f"127.0.0.1:{port}") as client:
        said = await client.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\n\n")
    assert said.startswith("HTTP/1.1 502 ")
    assert client.refused == []


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        yield opened


def confine(bench: Bench, *patterns: str) -> list[Refusal]:
    os.makedirs(bench.files, exist_ok=True)
    policy = SandboxPolicy(
        roots=(str(bench.root),), session=(bench.files,), hosts=build_list(patterns)
    )
    confinement = Confinement("bubblewrap", policy, FOUND.program)
    refused: list[Refusal] = []
    confinement.on_refusal = refused.append
    bench.workspace.shells.confinement = confinement
    return refused


@pytest.mark.needs("bubblewrap", "curl")
async def test_a_listed_host_is_reached_and_no_other_by_no_other_way(bench: Bench) -> None:
    async with listening(greet) as server, listening(greet) as other:
        refused = confine(bench, f"127.0.0.1:{server.port}")
        text = await bench.bash(
            f"curl -sS {server.url}/; echo; curl -sSp {server.url}/tunnelled; echo; "
            f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{server.url}/\").read())'; "
            f"curl -sS {other.url}/other; curl -sS --noproxy '*' {server.url}/direct; "
            f"exec 3<>/dev/tcp/127.0.0.1/{server.port} && echo out; "
            "python3 -c 'import socket; s = socket.socket(2, 2); s.connect((\"192.0.2.1\", 53))'; "
            "true"
        )
    assert [head.split()[1] for head in server.heads] == ["/", "/tunnelled", "/"]
    assert other.connections == 0
    assert f"refused a connection to 127.0.0.1:{other.port}: port {other.port} of it" in text
    assert "Network is unreachable" in text
    assert [(one.host, one.port) for one in refused] == [("127.0.0.1", other.port)]


@pytest.mark.needs("bubblewrap", "curl")
async def test_a_host_is_told_of_once_however_often_it_is_tried(bench: Bench) -> None:
    refused = confine(bench, "example.com")
    text = await bench.bash("for i in 1 2 3; do curl -s http://192.0.2.7/; done; true")
    assert text.count("<the sandbox refused a connection to 192.0.2.7:80: ") == 1
    assert len(refused) == 1


@pytest.mark.needs("bubblewrap", "ps")
async def test_the_command_sees_no_trace_of_how_it_was_joined(bench: Bench) -> None:
    confine(bench, "example.com")
    text = await bench.bash(
        "yes | head -1; echo ${PIPESTATUS[0]}; ls /proc/self/fd | wc -l; ps -e | grep -c python"
    )
    # Killed by SIGPIPE as in any shell; three streams and the listing itself; no process of ours.
    assert text.splitlines()[:4] == ["y", "141", "4", "0"]


@pytest.mark.needs("bubblewrap", "curl")
async def test_a_command_that_goes_on_has_its_network_for_so_long(bench: Bench) -> None:
    async with listening(greet) as server:
        confine(bench, f"127.0.0.1:{server.port}")
        await bench.bash(
            f"read -r word; curl -sS {server.url}/$word", mode="async", shellId="later"
        )
        await bench.call("write_bash", shellId="later", input="here{enter}", delay=5)
        assert [head.split()[1] for head in server.heads] == ["/here"]


@pytest.mark.needs("bubblewrap")
async def test_files_behind_which_programs_outside_listen_are_hidden(
    bench: Bench, tmp_path: Path
) -> None:
    path = str(bench.path("agent.sock"))
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(path)
        outside.listen()
        confine(bench, "example.com")
        connect = 'import socket; socket.socket(1).connect("agent.sock"); print("connected")'
        text = await bench.bash(f"python3 -c '{connect}'")
    assert "connected" not in text
    assert "refused" in text or "not a socket" in text.lower()
