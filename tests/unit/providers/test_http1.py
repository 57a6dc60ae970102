import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.providers.http1 import MessageParser, ProtocolError


def feed(stream: bytes, size: int, **options: bool) -> tuple[MessageParser, bytes]:
    parser = MessageParser(**options)
    body = []
    for at in range(0, len(stream), size):
        body += parser.feed(stream[at : at + size])
        if parser.complete:
            parser.rest += stream[at + size :]
            break
    return parser, b"".join(body)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_chunked_body_with_extensions_and_trailers_is_read(size: int) -> None:
    stream = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4;name=value\r\nWiki\r\n5\r\npedia\r\nA\r\n0123456789\r\n0\r\nX-Check: 1\r\n\r\nnext"
    )
    parser, body = feed(stream, size)
    assert body == b"Wikipedia0123456789"
    assert parser.complete
    assert parser.rest == b"next"


@pytest.mark.parametrize("size", [1, 1000])
def test_a_body_of_known_length_ends_where_it_says(size: int) -> None:
    parser, body = feed(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", size)
    assert (body, parser.rest, parser.complete) == (b"abc", b"def", True)


def test_a_body_without_length_ends_with_the_connection() -> None:
    parser, body = feed(b"HTTP/1.0 200 OK\r\n\r\nabc", 1000)
    assert (body, parser.complete) == (b"abc", False)
    parser.end()
    assert parser.complete


@pytest.mark.parametrize("size", [1, 1000])
def test_interim_answers_are_skipped(size: int) -> None:
    stream = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 204 No Content\r\n\r\n"
    )
    parser, _ = feed(stream, size)
    assert parser.complete
    assert parser.head is not None
    assert parser.head.status == 204


def test_a_tunnel_ends_with_its_head_if_it_was_granted() -> None:
    parser, _ = feed(b"HTTP/1.1 200 Established\r\n\r\n\x16\x03", 1000, tunnel=True)
    assert (parser.complete, parser.rest) == (True, b"\x16\x03")
    refused, body = feed(b"HTTP/1.1 407 Proxy\r\nContent-Length: 2\r\n\r\nno", 1000, tunnel=True)
    assert (refused.complete, body) == (True, b"no")


def test_headers_are_lowered_and_repeated_ones_joined() -> None:
    parser, _ = feed(b"HTTP/1.1 204 X\nA: 1\nb:  2 \na: 3\nbad line\n\n", 1000)
    assert parser.head is not None
    assert parser.head.headers == {"a": "1, 3", "b": "2"}


def test_a_request_without_a_body_is_complete_with_its_head() -> None:
    parser, _ = feed(b"GET /models HTTP/1.1\r\nHost: x\r\n\r\n", 1, request=True)
    assert parser.complete
    assert parser.head is not None
    assert parser.head.start == ("GET", "/models", "HTTP/1.1")


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 20_000,
        b"x" * 300_000,
    ],
)
def test_what_is_not_http_is_refused(stream: bytes) -> None:
    with pytest.raises(ProtocolError):
        feed(stream, 1 << 20)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", True),
    ],
)
def test_whether_a_connection_may_be_used_again(head: bytes, expected: bool) -> None:
    parser, _ = feed(head, 1000)
    assert parser.head is not None
    assert parser.head.keeps_alive is expected


@given(st.lists(st.binary(min_size=1, max_size=30)), st.integers(1, 40))
def test_where_a_chunked_body_is_cut_makes_no_difference(chunks: list[bytes], size: int) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"
    parser, body = feed(stream, size)
    assert (parser.complete, body) == (True, b"".join(chunks))


@given(st.binary(max_size=200))
def test_a_cut_message_is_never_taken_for_a_whole_one(body: bytes) -> None:
    stream = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body) + 1, body)
    parser, _ = feed(stream, 1000)
    assert not parser.complete
    with pytest.raises(ProtocolError):
        parser.end()
