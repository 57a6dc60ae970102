"""Signing in to MCP servers with the installed program."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import mcp_browser
from clikit import Cli, Outcome, serving
from mcpkit import PATIENT, configure
from oauthkit import SignInPeer, serving_sign_in
from programkit import FOREIGN

BROWSER = {"BROWSER": f"{sys.executable} {mcp_browser.__file__} %s"}
DONE = {"text": "Done."}


def use(cli: Cli, peer: SignInPeer, **fields: Any) -> None:
    configure(
        cli.home / "mcp-config.json", far={"type": "http", "url": peer.url, **PATIENT, **fields}
    )


def echo(text: str) -> dict[str, Any]:
    return {"tools": [{"name": "far-echo", "arguments": {"text": text}}]}


async def log_in(cli: Cli, *flags: str) -> Outcome:
    return await cli.run("mcp", "login", "far", *flags, env=BROWSER)


async def call(cli: Cli, *replies: Any) -> Outcome:
    async with serving([*replies, DONE]) as model:
        return await cli.use(model).ask("go")


def ends(outcome: Outcome) -> list[Any]:
    return outcome.of("tool.execution_complete")


async def test_a_run_says_what_to_do_and_after_the_login_the_tools_work(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        use(cli, peer)
        before = await call(cli, DONE)
        (state,) = before.of("session.mcp_server_status_changed")[-1:]
        assert state["status"] == "needs-auth"
        assert any(
            "run `trimtab mcp login far`" in one["message"] for one in before.of("session.warning")
        )
        login = await log_in(cli)
        assert (login.code, login.text) == (0, "Signed in to far.\n"), login.notes
        assert f"{peer.origin}/authorize?response_type=code" in login.notes
        (asked,) = peer.asked
        assert asked["resource"] == peer.url
        assert asked["scope"] == "read"
        outcome = await call(cli, echo("hello"))
        assert ends(outcome)[0]["result"]["content"] == "hello"
        (file,) = (cli.home / "mcp-oauth-config").glob("*.json")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "access-token" not in outcome.text + "".join(log.read_text() for log in cli.logs())
        logout = await cli.run("mcp", "logout", "far")
        assert logout.text == "Signed out of far.\n"
        assert not list((cli.home / "mcp-oauth-config").iterdir())


LOCKED = """
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

class Locked(KeyringBackend):
    priority = 5
    def get_password(self, *named):
        raise KeyringLocked("it is locked")
    set_password = delete_password = get_password
"""


def use_keyring(cli: Cli, backend: str) -> None:
    """Let the program find the package `keyring`, with a backend."""
    cli.env |= {
        "PYTHONPATH": os.pathsep.join((str(FOREIGN / "keyring"), str(cli.home))),
        "PYTHON_KEYRING_BACKEND": backend,
        "XDG_DATA_HOME": str(cli.home / "data"),
    }


@pytest.mark.foreign("keyring")
async def test_the_keyring_keeps_the_tokens_where_there_is_one(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        use_keyring(cli, "keyrings.alt.file.PlaintextKeyring")
        use(cli, peer)
        login = await log_in(cli)
        assert (login.code, login.text) == (0, "Signed in to far.\n"), login.notes
        (file,) = (cli.home / "mcp-oauth-config").glob("*.json")
        (token,) = peer.issued
        assert token not in file.read_text()
        (kept,) = (cli.home / "data").rglob("*.cfg")
        assert "mcp_" in kept.read_text()
        outcome = await call(cli, echo("hello"))
        assert ends(outcome)[0]["result"]["content"] == "hello"
        assert peer.logins == 1
        assert (await cli.run("mcp", "logout", "far")).code == 0
        assert "mcp_" not in kept.read_text()
        assert not list((cli.home / "mcp-oauth-config").iterdir())


@pytest.mark.foreign("keyring")
async def test_a_locked_keyring_is_explained_and_the_way_around_it_works(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        (cli.home / "locked_keyring.py").write_text(LOCKED)
        use_keyring(cli, "locked_keyring.Locked")
        use(cli, peer)
        refused = await log_in(cli)
        assert refused.code != 0
        assert "unlock it, or set COPILOT_DISABLE_KEYTAR=1" in refused.notes
        assert "Traceback" not in refused.notes
        assert peer.logins == 0
        assert not peer.requests
        cli.env["COPILOT_DISABLE_KEYTAR"] = "1"
        assert (await log_in(cli)).code == 0


async def test_nobody_signs_in_if_the_sign_in_cannot_be_kept(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        use(cli, peer)
        (cli.home / "mcp-oauth-config").write_text("in the way")
        refused = await log_in(cli)
        assert refused.code != 0
        assert "is not a folder: move it away and try again" in refused.notes
        assert peer.logins == 0


async def test_secrets_of_a_client_are_hidden_where_its_entry_is_shown(cli: Cli) -> None:
    oauth = {"clientId": "me", "clientSecret": "very-secret", "privateKey": "-----BEGIN"}
    provider = {"tokenEndpoint": "https://idp.example/t", "clientId": "a", "idToken": "id-secret"}
    entry = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    configure(
        cli.home / "mcp-config.json",
        far={**entry, "oauth": {**oauth, "identityProvider": provider}},
    )
    for flags in ((), ("--json",)):
        shown = (await cli.run("mcp", "get", "far", *flags)).text
        assert not any(secret in shown for secret in ("very-secret", "BEGIN", "id-secret"))
        assert '"clientId": "me"' in shown
    assert "very-secret" in (await cli.run("mcp", "get", "far", "--show-secrets")).text


async def test_a_call_that_needs_more_is_allowed_after_another_login(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        peer.write_scope = "write"
        use(cli, peer)
        await log_in(cli)
        (end,) = ends(await call(cli, echo("no")))
        assert "it wants write" in end["error"]["message"]
        assert "run `trimtab mcp login far`" in end["error"]["message"]
        assert (await log_in(cli)).code == 0
        assert peer.asked[-1]["scope"] == "read write"
        (end,) = ends(await call(cli, echo("yes")))
        assert end["result"]["content"] == "yes"


async def test_three_sessions_with_short_tokens_share_each_refresh(cli: Cli) -> None:
    """No second login, no call lost, no refresh token used twice."""
    async with serving_sign_in(lifetime=1.0) as peer:
        use(cli, peer)
        assert (await log_in(cli)).code == 0
        replies = [echo(str(number)) | {"delay": 0.4} for number in range(6)]
        outcomes = await asyncio.gather(*(call(cli, *replies) for _ in range(3)))
        for outcome in outcomes:
            assert [end["success"] for end in ends(outcome)] == [True] * 6, outcome.text
        assert peer.logins == 1
        assert peer.refreshes > 0
        assert len(peer.used) == len(set(peer.used))


@pytest.mark.parametrize(
    ("metadata", "answer", "reason"),
    [
        ({"issuer": "https://elsewhere.example"}, {}, "names another issuer"),
        ({"code_challenge_methods_supported": ["plain"]}, {}, "does not protect its codes"),
        ({"authorization_endpoint": "javascript:alert(1)"}, {}, "not a secure address"),
        ({"token_endpoint": "file:///etc/passwd"}, {}, "not a secure address"),
        ({}, {"iss": "https://elsewhere.example"}, "the answer came from https://elsewhere"),
        ({}, {"error": "access_denied", "code": ""}, "refused the sign-in (access_denied)"),
    ],
)
async def test_a_login_that_cannot_be_trusted_ends_with_a_reason(
    cli: Cli, metadata: Any, answer: Any, reason: str
) -> None:
    async with serving_sign_in() as peer:
        peer.metadata, peer.answer = metadata, answer
        use(cli, peer)
        login = await log_in(cli)
        assert login.code == 7
        assert reason in login.notes
        assert not peer.forms
        assert not list(cli.home.glob("mcp-oauth-config/*.json"))


JSON, HTML = "application/json", "text/html"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
SERVICE = "/.well-known/oauth-authorization-server"


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        (RESOURCE, (200, JSON, b'{"resource": "https://x.example"}'), "for another resource"),
        (RESOURCE, (200, JSON, b"[" * 300_000), "an answer of more than 256 KB; check it"),
        (SERVICE, (200, HTML, b"<html>"), "has no metadata; try again later"),
        ("/register", (200, HTML, b"<html>"), "not JSON (text/html); ask who runs it"),
        (
            "/register",
            (400, JSON, b'{"error": "no", "error_description": "a\\nb\\u001b[2J"}'),
            "(no: a b)",
        ),
        ("/token", (200, "text/form", b"access_token=a"), "not JSON (text/form); ask who runs it"),
        ("/token", (500, HTML, b"<html>"), "answered with 500; try again later"),
        ("/token", (302, HTML, b""), "refused to issue a token (status 302); try again"),
        ("/token", (200, JSON, b'{"error": "expired"}'), "to issue a token (expired); try again"),
        ("/token", (200, JSON, b'{"access_token": "a\\r\\nX: 1"}'), "no bearer token; ask who"),
        ("/token", (200, JSON, b'{"access_token": "a", "token_type": "mac"}'), "no bearer token"),
    ],
)
async def test_a_service_that_answers_nonsense_gets_one_sentence(
    cli: Cli, path: str, answer: tuple[int, str, bytes], reason: str
) -> None:
    async with serving_sign_in() as peer:
        peer.spoiled[path] = answer
        use(cli, peer)
        login = await log_in(cli)
        assert login.code == 7
        last = login.notes.splitlines()[-1]
        assert last.startswith("Signing in to far failed: ")
        assert reason in last
        assert not list(cli.home.glob("mcp-oauth-config/*.json"))


async def test_a_lifetime_that_comes_as_text_is_understood(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        token = b'{"access_token": "t", "token_type": "bearer", "expires_in": "3600"}'
        peer.spoiled["/token"] = (200, JSON, token)
        peer.issued["t"] = "9999999999 read"
        use(cli, peer)
        assert (await log_in(cli)).code == 0
        (file,) = cli.home.glob("mcp-oauth-config/*.json")
        assert json.loads(file.read_text())["lifetime"] == 3600


async def test_an_answer_with_another_state_is_not_taken(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        use(cli, peer)
        process = await cli.start("mcp", "login", "far", "--no-browser")
        assert process.stderr is not None
        async with asyncio.timeout(50):
            await process.stderr.readline()
            address = (await process.stderr.readline()).decode().strip()
            redirect = address.partition("redirect_uri=")[2].partition("&")[0]
            port = int(redirect.partition("127.0.0.1%3A")[2].partition("%2F")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /callback?code=stolen&state=guessed HTTP/1.1\r\n\r\n")
            assert b"400" in await reader.readline()
            writer.close()
            browser = await asyncio.create_subprocess_exec(
                sys.executable, mcp_browser.__file__, address
            )
            assert await browser.wait() == 0
            assert await process.wait() == 0
        assert [form["code"] for form in peer.forms] == ["code-1"]


async def test_programs_and_servers_with_a_token_have_no_login(cli: Cli) -> None:
    configure(
        cli.home / "mcp-config.json",
        near={"command": "cat"},
        far={"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer x"}},
    )
    for name, reason in (("near", "is a program on this machine"), ("far", "has a token")):
        outcome = await cli.run("mcp", "login", name)
        assert outcome.code == 2
        assert reason in outcome.notes


async def test_settings_of_the_sign_in_that_are_wrong_are_a_reason(cli: Cli) -> None:
    async with serving_sign_in() as peer:
        use(cli, peer, oauth={"scopes": 7})
        outcome = await cli.run("mcp", "test", "far")
        assert outcome.code == 1
        assert "its oauth settings are wrong" in outcome.text


async def test_a_damaged_store_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    async with serving_sign_in() as peer:
        use(cli, peer)
        await log_in(cli)
        (file,) = (cli.home / "mcp-oauth-config").glob("*.json")
        assert json.loads(file.read_text())["issuer"] == peer.origin
        file.write_text("{")
        outcome = await cli.run("mcp", "test", "far")
        assert outcome.code == 1
        assert "trimtab mcp logout far" in outcome.text
        assert (await log_in(cli)).code == 0
