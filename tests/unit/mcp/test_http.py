"""Servers with an address: both kinds of HTTP, and answers nobody wants."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mcpkit import HttpPeer, hosting, serving_http
from trimtab.contracts.customization import McpServer
from trimtab.mcp.messages import STATELESS, VERSIONS
from trimtab.providers.http_server import Exchange


def at(peer: HttpPeer, **fields: Any) -> McpServer:
    given = {"type": "http", "url": peer.url, **fields}
    return McpServer(name="small", source="user", **given)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_server_answers_in_json_or_in_events(tmp_path: Path, streams: bool) -> None:
    async with serving_http() as peer:
        peer.streams = streams
        config = at(peer, headers={"Authorization": "Bearer t0ken"})
        async with hosting(tmp_path, config) as hosted:
            assert (await hosted.call("small-echo", text="hi")).text == "hi"
            assert hosted.states() == ["pending", "connected"]
    posts = [(headers, body) for method, headers, body in peer.requests if method == "POST"]
    probe, hello, *others = posts
    assert probe[0]["mcp-protocol-version"] == STATELESS
    assert probe[0]["mcp-method"] == "server/discover"
    assert "mcp-session-id" not in hello[0]
    for headers, _ in others:
        assert headers["mcp-session-id"] == "s1"
        assert headers["mcp-protocol-version"] == VERSIONS[0]
        assert headers["accept"] == "application/json, text/event-stream"
        assert headers["authorization"] == "Bearer t0ken"
    assert peer.requests[-1][0] == "DELETE"
    assert peer.requests[-1][1]["mcp-session-id"] == "s1"


async def test_a_list_that_changes_is_told_in_the_servers_own_stream(tmp_path: Path) -> None:
    async with serving_http() as peer:
        peer.streams = True
        async with hosting(tmp_path, at(peer)) as hosted:
            before = len(hosted.host.tools)
            peer.mode = "many"
            peer.unasked.put_nowait(
                {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            )
            await hosted.until(lambda: len(hosted.host.tools) == 200)
            assert before == 12


async def test_the_older_kind_has_one_stream_for_all_answers(tmp_path: Path) -> None:
    async with serving_http() as peer:
        config = at(peer, type="sse", url=peer.url.replace("/mcp", "/sse"))
        async with hosting(tmp_path, config) as hosted:
            assert hosted.states() == ["pending", "connected"]
            assert (await hosted.call("small-echo", text="old")).text == "old"


async def test_a_server_that_forgot_the_session_is_greeted_again(tmp_path: Path) -> None:
    async with serving_http() as peer, hosting(tmp_path, at(peer)) as hosted:

        async def forget(exchange: Exchange) -> bool:
            if exchange.request.method != "POST":  # the stream of events may begin only now
                return False
            peer.refuse = None
            await exchange.answer(404, b"")
            return True

        peer.refuse = forget
        first = await hosted.call("small-echo", text="lost")
        assert first.kind == "failure"
        assert (await hosted.call("small-echo", text="back")).text == "back"


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        (401, "needs-auth", "it wants you to sign in (401); run `trimtab mcp login small`"),
        (403, "failed", "it answered POST with 403 (no entry); check its address and headers"),
        (500, "failed", "it answered POST with 500 (no entry); try again later"),
        (404, "failed", "it answered POST with 404 (no entry); check its address and headers"),
    ],
)
async def test_a_refusal_is_a_reason(tmp_path: Path, status: int, state: str, reason: str) -> None:
    async def refuse(exchange: Exchange) -> bool:
        await exchange.answer(status, b'{"error": {"message": "no entry"}}')
        return True

    async with serving_http() as peer:
        peer.refuse = refuse
        async with hosting(tmp_path, at(peer)) as hosted:
            assert hosted.states() == ["pending", state]
            assert hosted.error() == reason


async def test_nobody_at_the_address_is_a_reason(tmp_path: Path) -> None:
    async with serving_http() as peer:
        config = at(peer)
    async with hosting(tmp_path, config) as hosted:
        assert hosted.states() == ["pending", "failed"]
        assert "nothing listens there" in hosted.error()


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://example.com", "http://"])
async def test_what_is_no_address_is_a_reason(tmp_path: Path, url: str) -> None:
    config = McpServer(name="small", type="http", source="user", url=url)
    async with hosting(tmp_path, config) as hosted:
        assert hosted.error() == "its url is not a valid http or https address; correct it"


async def test_offline_only_this_machine_is_contacted(tmp_path: Path) -> None:
    far = McpServer(name="far", type="http", source="user", url="https://mcp.example.com/x")
    async with serving_http() as peer, hosting(tmp_path, far, at(peer), offline=True) as hosted:
        assert (
            hosted.error("far")
            == "mcp.example.com may not be contacted offline; run without --offline"
        )
        assert hosted.states() == ["pending", "connected"]


async def test_a_redirection_is_followed_on_the_same_host_only(tmp_path: Path) -> None:
    async with serving_http() as peer, serving_http() as other:
        target = [f"{peer.url}/", ""]

        async def move(exchange: Exchange) -> bool:
            if exchange.request.path == "/mcp":
                await exchange.answer(307, b"", headers=[("location", target[0])])
                return True
            return False

        peer.refuse = move
        async with hosting(tmp_path, at(peer)) as hosted:
            assert hosted.states() == ["pending", "connected"]
        target[0] = other.url
        async with hosting(tmp_path, at(peer, headers={"X-Key": "s3cr3t"})) as hosted:
            assert hosted.error().startswith("it redirects to another origin")
        assert other.requests == []


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_that_never_comes_is_given_up(tmp_path: Path, streams: bool) -> None:
    async def hang(exchange: Exchange) -> bool:
        if b'"tools/call"' in exchange.request.body:
            if streams:
                await exchange.begin(200, [("content-type", "text/event-stream")])
                await exchange.send([b": wait\n\n"])
            await exchange.silence()
        return False

    async with serving_http() as peer:
        async with hosting(tmp_path, at(peer, timeout=400)) as hosted:
            peer.refuse = hang
            result = await hosted.call("small-echo", text="x")
            assert "did not answer in time" in result.text
        told = [body["method"] for _, _, body in peer.requests if body]
        assert "notifications/cancelled" in told


NO_RESULT = "its answer contained no result; check it"


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("application/json", b"{}", NO_RESULT),
        ("application/json", b"", "its answer was empty; check its address"),
        ("text/plain", b"no json", "its answer is not a message of MCP (it begins with 'no json')"),
        ("application/json", b'{"a": NaN}', "its answer is not a message of MCP (it begins with"),
        ("text/event-stream", b"data: {}\n\n", NO_RESULT),
        ("text/event-stream", b"<html>", NO_RESULT),
        ("text/html", b"sign in", "it answered with a web page instead of a message of MCP"),
        ("application/json", b" <html>", "it answered with a web page instead of a message"),
        ("application/gzip", b"\x1f\x8b\x08", "its answer is compressed (gzip)"),
        ("application/json", b'{"jsonrpc": "2.0", "id": 999, "result": {}}', NO_RESULT),
    ],
)
async def test_an_answer_to_something_else_is_a_failure_at_once(
    tmp_path: Path, kind: str, body: bytes, reason: str
) -> None:
    async def mislead(exchange: Exchange) -> bool:
        encoding = [("content-encoding", "gzip")] if kind.endswith("gzip") else []
        await exchange.answer(200, body, kind=kind, headers=encoding)
        return True

    async with serving_http() as peer:
        peer.refuse = mislead
        async with asyncio.timeout(60), hosting(tmp_path, at(peer)) as hosted:
            assert hosted.error().startswith(reason)
            assert "; check" in hosted.error()


@pytest.mark.parametrize("frame", ["\ufeff{}", "data: {}", "\ufeffid: 1\r\ndata: {}\r\n\r\n"])
async def test_small_mistakes_in_the_form_of_an_answer_are_forgiven(
    tmp_path: Path, frame: str
) -> None:
    """A byte order mark, or a stream without its last blank line."""
    kind = "text/event-stream" if "data:" in frame else "text/plain"

    async def answer(exchange: Exchange) -> bool:
        if b'"id"' not in exchange.request.body:
            return False
        (reply,) = peer._reply(json.loads(exchange.request.body))
        await exchange.answer(200, frame.replace("{}", json.dumps(reply)).encode(), kind=kind)
        return True

    async with serving_http() as peer:
        peer.refuse = answer
        async with hosting(tmp_path, at(peer)) as hosted:
            assert hosted.states() == ["pending", "connected"], hosted.error()


async def test_a_broken_answer_is_not_called_that_of_a_model_service(tmp_path: Path) -> None:
    async def spoil(exchange: Exchange) -> bool:
        await exchange.begin(200, [("content-type", "application/json")], length=100)
        await exchange.send([b"{"])
        exchange.close()
        return True

    async with serving_http() as peer:
        peer.refuse = spoil
        async with hosting(tmp_path, at(peer)) as hosted:
            assert "model" not in hosted.error()
            assert hosted.error().startswith("the answer was cut off")
            assert hosted.error().endswith("; try again")


async def test_an_endless_answer_is_cut(tmp_path: Path) -> None:
    async def flood(exchange: Exchange) -> bool:
        await exchange.begin(200, [("content-type", "application/json")])
        for _ in range(40):
            await exchange.send([b" " * 1_000_000])
        await exchange.end()
        return True

    async with serving_http() as peer:
        peer.refuse = flood
        async with hosting(tmp_path, at(peer)) as hosted:
            assert hosted.error() == "it sent an answer of more than 16 MB; check it"


async def test_a_stream_that_ends_before_the_answer_is_taken_up_again(tmp_path: Path) -> None:
    waiting: list[Any] = []

    async def end_early(exchange: Exchange) -> bool:
        request = exchange.request
        message = json.loads(request.body) if request.body else {}
        if message.get("method") == "tools/call":
            waiting.append(message["id"])
            await exchange.begin(200, [("content-type", "text/event-stream")])
            await exchange.send([b"id: e-1\nretry: 20\ndata: \n\n"])
            await exchange.end()
            return True
        if request.headers.get("last-event-id") == "e-1":
            result = {"content": [{"type": "text", "text": "after all"}]}
            answer = json.dumps({"jsonrpc": "2.0", "id": waiting[0], "result": result})
            await exchange.begin(200, [("content-type", "text/event-stream")])
            await exchange.send([f"id: e-2\ndata: {answer}\n\n".encode()])
            await exchange.end()
            return True
        return False

    async with serving_http() as peer:
        peer.refuse = end_early
        async with hosting(tmp_path, at(peer)) as hosted:
            assert (await hosted.call("small-echo", text="x")).text == "after all"
    resumed = [headers for _, headers, _ in peer.requests if "last-event-id" in headers]
    assert [headers["mcp-session-id"] for headers in resumed] == ["s1"]


async def test_a_stream_without_ids_that_ends_before_the_answer_is_a_failure(
    tmp_path: Path,
) -> None:
    async def end_early(exchange: Exchange) -> bool:
        request = exchange.request
        if b"tools/call" not in request.body:
            return False
        await exchange.begin(200, [("content-type", "text/event-stream")])
        await exchange.send([b": nothing\n\n"])
        await exchange.end()
        return True

    async with serving_http() as peer:
        peer.refuse = end_early
        async with hosting(tmp_path, at(peer)) as hosted:
            assert "contained no result" in (await hosted.call("small-echo", text="x")).text


async def test_a_stateless_server_has_headers_and_no_session(tmp_path: Path) -> None:
    async with serving_http() as peer:
        peer.mode = "stateless"
        async with hosting(tmp_path, at(peer)) as hosted:
            assert (await hosted.call("small-echo", text="hi")).text == "hi"
    assert {method for method, _, _ in peer.requests} == {"POST"}
    assert {body["method"] for _, _, body in peer.requests} == {
        *("server/discover", "tools/list", "tools/call", "subscriptions/listen")
    }
    for _, headers, body in peer.requests:
        assert headers["mcp-protocol-version"] == STATELESS
        assert headers["mcp-method"] == body["method"]
        assert "mcp-session-id" not in headers
    (called,) = [headers for _, headers, body in peer.requests if body["method"] == "tools/call"]
    assert called["mcp-name"] == "echo"


async def test_an_answer_of_an_unknown_type_is_a_failure(tmp_path: Path) -> None:
    async def begin_task(exchange: Exchange) -> bool:
        message = json.loads(exchange.request.body)
        if message["method"] != "tools/call":
            return False
        result = {"resultType": "task", "taskId": "7"}
        await exchange.answer(200, json.dumps({"id": message["id"], "result": result}).encode())
        return True

    async with serving_http() as peer:
        peer.mode = "stateless"
        peer.refuse = begin_task
        async with hosting(tmp_path, at(peer)) as hosted:
            result = await hosted.call("small-echo", text="x")
            assert result.kind == "failure"
            assert "its answer is of the unknown type 'task'; check it" in result.text
