"""Settings that a client gives when it resumes a session, whether it is still open or not."""

import json
from pathlib import Path
from typing import Any

import pytest
from copilot import ModelCapabilitiesOverride, ModelSupportsOverride
from copilot.generated.rpc import (
    MetadataSetWorkingDirectoryRequest,
    SessionsCloseRequest,
    SessionUpdateOptionsParams,
)
from copilot.session import PermissionHandler

from gitkit import git
from sdkkit import LIMIT, Heard, Sdk, bash, serving, use
from trimtab.testing import ModelServer, Script

BLIND = ModelCapabilitiesOverride(supports=ModelSupportsOverride(vision=False))
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)

CITED = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "messages-model",
    "stop_reason": "end_turn",
    "content": [
        {
            "type": "text",
            "text": "Moon.",
            "citations": [{"type": "web_search_result_location", "url": "https://tides.test/"}],
        }
    ],
}


class Resumed:
    """A session that was prompted once and is then resumed with other settings."""

    def __init__(self, sdk: Sdk, server: ModelServer, client: Any, *, still_open: bool) -> None:
        self.sdk = sdk
        self.server = server
        self.heard = Heard()
        self._client = client
        self._still_open = still_open
        self.session: Any = None

    async def resume(self, **settings: Any) -> Any:
        first = await self._client.create_session(
            on_permission_request=PermissionHandler.approve_all
        )
        await first.send_and_wait("first", timeout=LIMIT)
        if not self._still_open:
            await self._client.rpc.sessions.close(SessionsCloseRequest(session_id=first.session_id))
        self.session = await self._client.resume_session(
            first.session_id,
            on_permission_request=PermissionHandler.approve_all,
            on_event=self.heard,
            **settings,
        )
        return self.session

    async def ask(self, prompt: str = "second") -> dict[str, Any]:
        """Send a prompt; return the last request to the model."""
        await self.session.send_and_wait(prompt, timeout=LIMIT)
        body: dict[str, Any] = self.server.requests[-1].json
        return body


@pytest.fixture(params=[True, False], ids=["open", "closed"])
async def resumed(sdk: Sdk, request: pytest.FixtureRequest) -> Any:
    cited = {"when": {"last": "cite"}, "raw": json.dumps(CITED)}
    async with serving({"replies": [cited], "otherwise": {"text": "ok"}}) as server:
        sdk.use(server)
        async with sdk.client() as client:
            yield Resumed(sdk, server, client, still_open=request.param)


def tools_of(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


async def test_the_working_directory_counts(resumed: Resumed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".github").mkdir(parents=True)
    (other / "here.txt").write_text("found")
    await resumed.resume(working_directory=str(other))
    resumed.server.load(Script.of([bash("pwd"), use("view", path="here.txt"), {"text": "ok"}]))
    body = await resumed.ask()
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    assert str(other) in results[0]
    assert "found" in results[1]
    assert str(other) in body["messages"][0]["content"]
    snapshot = await resumed.session.rpc.metadata.snapshot()
    assert snapshot.working_directory == str(other)


async def test_the_available_tools_count(resumed: Resumed) -> None:
    await resumed.resume(available_tools=["view", "glob"])
    assert tools_of(await resumed.ask()) == ["view", "glob"]


async def test_the_excluded_tools_count(resumed: Resumed) -> None:
    await resumed.resume(excluded_tools=["bash"])
    names = tools_of(await resumed.ask())
    assert "bash" not in names
    assert "view" in names


@pytest.mark.parametrize("mode", ["append", "replace"])
async def test_the_system_message_counts(resumed: Resumed, mode: str) -> None:
    await resumed.resume(system_message={"mode": mode, "content": "Speak like a sailor."})
    system = (await resumed.ask())["messages"][0]["content"]
    assert "Speak like a sailor." in system
    assert (system == "Speak like a sailor.") is (mode == "replace")


async def test_the_instruction_directories_count(resumed: Resumed, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Name every knot.")
    await resumed.resume(instruction_directories=[str(folder)])
    assert "Name every knot." in str((await resumed.ask())["messages"])


async def test_the_provider_counts_with_its_headers_and_key(resumed: Resumed) -> None:
    async with ModelServer(Script.of([{"text": "from the other"}])) as other:
        await resumed.resume(
            model="their-model",
            provider={
                "type": "openai",
                "base_url": other.base_url,
                "api_key": "sk-their-key-0123456789",
                "headers": {"x-team": "deck"},
            },
        )
        await resumed.session.send_and_wait("second", timeout=LIMIT)
        (request,) = other.requests
    assert request.headers["authorization"] == "Bearer sk-their-key-0123456789"
    assert request.headers["x-team"] == "deck"
    assert request.json["model"] == "their-model"
    (log,) = resumed.sdk.logs()
    assert "sk-their-key" not in log.read_text()


async def test_the_excluded_built_in_agents_count(resumed: Resumed) -> None:
    await resumed.resume(excluded_builtin_agents=["explore"])
    (task,) = [
        tool["function"]
        for tool in (await resumed.ask())["tools"]
        if tool["function"]["name"] == "task"
    ]
    names = task["parameters"]["properties"]["agent_type"].get("enum") or task["description"]
    assert "explore" not in names
    assert "general-purpose" in names


async def test_the_session_limits_count(resumed: Resumed) -> None:
    await resumed.resume(model="gpt-4.1", session_limits={"max_ai_credits": 0.0001})
    await resumed.session.send("second")
    await resumed.heard.until("session.idle")
    warnings = [event.warning_type for event in resumed.heard.of("session.warning")]
    assert "budget" in warnings
    assert len(resumed.server.requests) == 1


async def test_citations_count(resumed: Resumed) -> None:
    await resumed.resume(model="messages-model", enable_citations=True)
    await resumed.session.send_and_wait("cite", timeout=LIMIT)
    citations = resumed.heard.of("assistant.message")[-1].citations
    assert [source.url for source in citations.sources] == ["https://tides.test/"]


async def test_the_vision_override_counts(resumed: Resumed) -> None:
    await resumed.resume(model_capabilities=BLIND)
    blob = {"type": "blob", "data": DOT, "mimeType": "image/png", "displayName": "dot.png"}
    await resumed.session.send_and_wait("look", attachments=[blob], timeout=LIMIT)
    assert "image_url" not in str(resumed.server.requests[-1].json["messages"])


@pytest.mark.parametrize("pending", [True, False])
async def test_the_resume_event_says_whether_pending_work_continues(
    resumed: Resumed, pending: bool
) -> None:
    await resumed.resume(continue_pending_work=pending)
    await resumed.heard.until("session.resume")
    assert resumed.heard.of("session.resume")[-1].continue_pending_work is pending


@pytest.mark.needs("git")
async def test_a_session_moves_with_its_working_directory(sdk: Sdk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "moved")
    async with serving([bash("pwd"), {"text": "ok"}]) as server:
        sdk.use(server)
        async with sdk.client() as client:
            heard = Heard()
            session = await client.create_session(
                on_permission_request=PermissionHandler.approve_all, on_event=heard
            )
            await session.rpc.options.update(
                SessionUpdateOptionsParams(working_directory=str(other))
            )
            await heard.until("session.context_changed")
            (change,) = heard.of("session.context_changed")
            assert (change.cwd, change.branch) == (str(other), "moved")
            await session.send_and_wait("where", timeout=LIMIT)
            result = server.requests[-1].json["messages"][-1]["content"]
            assert result.startswith(str(other))
            back = MetadataSetWorkingDirectoryRequest(working_directory=str(sdk.cwd))
            moved = await session.rpc.metadata.set_working_directory(back)
            assert moved.working_directory == str(sdk.cwd)
            listed = await client.list_sessions()
            assert listed[0].context.working_directory == str(sdk.cwd)
            missing = MetadataSetWorkingDirectoryRequest(working_directory="/nowhere/at/all")
            with pytest.raises(
                Exception, match="Directory does not exist or cannot be accessed: /nowhere/at/all"
            ):
                await session.rpc.metadata.set_working_directory(missing)
