"""Queued commands, differences, long polls, lifecycle and the words of errors, over the SDK."""

import asyncio
from typing import Any

import pytest
from copilot.generated import rpc

from gitkit import git, make_repository
from sdkkit import LIMIT, Sdk, bash, talking, use

DONE = {"text": "Done."}


async def test_a_queued_command_waits_its_turn_and_is_listed(sdk: Sdk) -> None:
    slow = {"text": "Slow.", "delay": 0.5}
    async with talking(sdk, [slow, DONE]) as talk:
        await talk.session.send("first")
        await talk.server.wait_for_requests(1)
        queued = await talk.session.rpc.commands.enqueue(
            rpc.EnqueueCommandParams(command="/context", display_text="Show the context")
        )
        assert queued.queued
        (item,) = (await talk.session.rpc.queue.pending_items()).items
        assert (item.kind.value, item.display_text) == ("command", "Show the context")
        assert item.id == queued.queue_id
        await talk.heard.until(
            lambda: [one for one in talk.heard.of("session.info") if one.info_type == "command"]
        )
        assert len(talk.server.requests) == 1
        assert not (await talk.session.rpc.queue.pending_items()).items


@pytest.mark.parametrize("handled", [True, False])
async def test_a_client_may_run_a_queued_command_itself(sdk: Sdk, handled: bool) -> None:
    async with talking(sdk, [DONE]) as talk:
        interest = rpc.RegisterEventInterestParams(event_type="command.queued")
        for _ in range(2):
            assert (await talk.session.rpc.event_log.register_interest(interest)).handle
        await talk.session.rpc.commands.enqueue(rpc.EnqueueCommandParams(command="/context"))
        await talk.heard.until("command.queued")
        (queued,) = talk.heard.of("command.queued")
        assert queued.command == "/context"
        result: Any = rpc.QueuedCommandHandled() if handled else rpc.QueuedCommandNotHandled()
        answer = rpc.CommandsRespondToQueuedCommandRequest(queued.request_id, result)
        assert (await talk.session.rpc.commands.respond_to_queued_command(answer)).success
        assert not (await talk.session.rpc.commands.respond_to_queued_command(answer)).success
        await talk.heard.until("session.idle")
        own = [one for one in talk.heard.of("session.info") if one.info_type == "command"]
        assert bool(own) is not handled


@pytest.mark.parametrize("text", ["", "  ", "/", "no command"])
async def test_what_is_not_a_command_is_not_queued(sdk: Sdk, text: str) -> None:
    async with talking(sdk, [DONE]) as talk:
        queued = await talk.session.rpc.commands.enqueue(rpc.EnqueueCommandParams(command=text))
        assert not queued.queued


async def test_the_differences_of_a_session_are_its_own(sdk: Sdk) -> None:
    (sdk.cwd / "kept.txt").write_text("one\n")
    (sdk.cwd / "gone.txt").write_text("x\n")
    replies = [
        use("edit", path="kept.txt", old_str="one", new_str="two"),
        use("create", path="new.txt", file_text="fresh\n"),
        bash("rm gone.txt"),
        DONE,
    ]
    async with talking(sdk, replies) as talk:
        await talk.say("go")
        asked = rpc.WorkspacesDiffRequest(mode=rpc.WorkspaceDiffMode.UNSTAGED)
        found = await talk.session.rpc.workspaces.diff(asked)
        assert found.is_fallback
        assert (found.requested_mode.value, found.mode.value) == ("unstaged", "session")
        changes = {change.path.rpartition("/")[2]: change for change in found.changes}
    kinds = {name: change.change_type.value for name, change in changes.items()}
    assert kinds == {"kept.txt": "modified", "new.txt": "added", "gone.txt": "deleted"}
    assert "-one\n+two\n" in changes["kept.txt"].diff
    assert "+fresh\n" in changes["new.txt"].diff


@pytest.mark.needs("git")
@pytest.mark.parametrize("mode", ["unstaged", "branch"])
async def test_the_differences_of_a_repository_come_from_git(sdk: Sdk, mode: str) -> None:
    make_repository(sdk.cwd)
    (sdk.cwd / "a.txt").write_text("one\n")
    git(sdk.cwd, "add", ".")
    git(sdk.cwd, "commit", "-qm", "first")
    git(sdk.cwd, "checkout", "-qb", "work")
    (sdk.cwd / "b.txt").write_text("b\n")
    git(sdk.cwd, "add", ".")
    git(sdk.cwd, "commit", "-qm", "second")
    (sdk.cwd / "a.txt").write_text("two\n")
    (sdk.cwd / "untracked.txt").write_text("u\n")
    async with talking(sdk, [DONE]) as talk:
        asked = rpc.WorkspacesDiffRequest(mode=rpc.WorkspaceDiffMode(mode))
        found = await talk.session.rpc.workspaces.diff(asked)
    changes = {change.path: change.change_type.value for change in found.changes}
    if mode == "unstaged":
        assert changes == {"a.txt": "modified", "untracked.txt": "added"}
    else:
        assert found.base_branch == "main"
        assert changes == {"a.txt": "modified", "b.txt": "added"}
    assert "-one\n+two" in next(one.diff for one in found.changes if one.path == "a.txt")


async def test_a_long_poll_ends_with_the_first_event_of_its_type(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        log = talk.session.rpc.event_log
        cursor = (await log.tail()).cursor
        wanted = rpc.EventLogReadRequest(
            cursor=cursor, types=["assistant.message"], wait_ms=60_000, max=1000
        )
        waiting = asyncio.ensure_future(log.read(wanted))
        await talk.session.rpc.log(rpc.LogRequest(message="not this one"))
        await talk.session.send("hi")
        async with asyncio.timeout(LIMIT):
            found = await waiting
        assert [event.type.value for event in found.events] == ["assistant.message"]


async def test_a_long_poll_that_hears_nothing_ends_with_nothing(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        wanted = rpc.EventLogReadRequest(types=["assistant.message"], wait_ms=50)
        found = await talk.session.rpc.event_log.read(wanted)
        assert not found.events
        assert found.cursor_status.value == "ok"


async def test_stored_activity_is_announced_to_every_client(sdk: Sdk) -> None:
    heard: list[Any] = []
    came = asyncio.Event()

    def on_lifecycle(event: Any) -> None:
        heard.append(event)
        if event.type == "session.updated":
            came.set()

    async with talking(sdk, [DONE]) as talk:
        talk.client.on_lifecycle(on_lifecycle)
        await talk.session.rpc.log(rpc.LogRequest(message="stored"))
        async with asyncio.timeout(LIMIT):
            await came.wait()
        assert heard[-1].session_id == talk.session.session_id


ERRORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "an empty name": ("session.name.set", {"name": "  "}, "empty"),
    "a path outside": (
        "session.workspaces.readFile",
        {"path": "../../secret"},
        "workspace files directory",
    ),
    "an absolute path": (
        "session.workspaces.createFile",
        {"path": "/etc/passwd", "content": ""},
        "workspace files directory",
    ),
    "an unknown event": (
        "session.history.truncate",
        {"eventId": "none"},
        "Event none not found in session",
    ),
    "an unknown event to fork at": ("sessions.fork", {"toEventId": "none"}, "not found"),
    "an unknown server": (
        "session.mcp.listTools",
        {"serverName": "none"},
        "'none': it is not connected. No MCP host initialized",
    ),
    "an empty model": ("session.model.switchTo", {"modelId": " "}, "empty"),
    "an unknown agent": ("session.agent.select", {"name": "nobody"}, "agent 'nobody' not found"),
    "an unknown mode": ("session.mode.set", {"mode": "sleepy"}, "Invalid parameters"),
    "a missing parameter": ("session.send", {}, "Invalid parameters"),
    "a bad diff mode": ("session.workspaces.diff", {"mode": "all"}, "Invalid parameters"),
}


@pytest.mark.parametrize("case", ERRORS)
async def test_errors_name_what_is_wrong(sdk: Sdk, case: str) -> None:
    method, params, words = ERRORS[case]
    async with talking(sdk, [DONE]) as talk:
        request = {"sessionId": talk.session.session_id, **params}
        with pytest.raises(Exception, match=words):
            await talk.client._client.request(method, request)


MISSING = "Directory does not exist or cannot be accessed: /no/such"
FOLDERS: dict[str, dict[str, Any]] = {
    "session.permissions.paths.add": {"path": "/no/such"},
    "session.permissions.paths.updatePrimary": {"path": "/no/such"},
    "session.permissions.folderTrust.addTrusted": {"path": "/no/such"},
    "session.permissions.configure": {"paths": {"additionalDirectories": ["/no/such"]}},
    "session.options.update": {"additionalDirectories": ["/no/such"]},
    "session.metadata.setWorkingDirectory": {"workingDirectory": "/no/such"},
}


async def test_folders_that_do_not_exist_are_neither_allowed_nor_trusted(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        request, about = talk.client._client.request, {"sessionId": talk.session.session_id}
        for method, params in FOLDERS.items():
            with pytest.raises(Exception, match=MISSING):
                await request(method, {**about, **params})
        with pytest.raises(Exception, match="must be absolute"):
            await request("session.permissions.paths.add", {**about, "path": "relative"})
        (sdk.cwd / "file").write_text("x")
        file = {**about, "path": str(sdk.cwd / "file")}
        with pytest.raises(Exception, match="Not a directory"):
            await request("session.permissions.folderTrust.addTrusted", file)
        with pytest.raises(Exception, match=MISSING):
            await talk.client.create_session(additional_directories=["/no/such"])
        allowed = await request("session.permissions.paths.list", about)
        assert allowed["directories"] == [str(sdk.cwd)]
        trust = {**about, "path": "/no/such"}
        assert not (await request("session.permissions.folderTrust.isTrusted", trust))["trusted"]


@pytest.mark.parametrize("backward", [False, True])
async def test_a_page_of_some_types_is_full_while_more_of_them_follow(
    sdk: Sdk, backward: bool
) -> None:
    async with talking(sdk, [DONE] * 5) as talk:
        for number in range(5):
            await talk.say(f"prompt {number}")
        params: dict[str, Any] = {
            "sessionId": talk.session.session_id,
            "types": ["user.message"],
            "max": 2,
            "direction": "backward" if backward else "forward",
        }
        pages: list[list[str]] = []
        more = True
        while more:
            page = await talk.client._client.request("session.eventLog.read", params)
            pages.append([event["data"]["content"][-1] for event in page["events"]])
            params["cursor"], more = page["cursor"], page["hasMore"]
        wanted = [["3", "4"], ["1", "2"], ["0"]] if backward else [["0", "1"], ["2", "3"], ["4"]]
        assert pages == wanted
        page = await talk.client._client.request("session.eventLog.read", params)
        assert page["events"] == []


GONE: dict[str, dict[str, Any]] = {
    "session.permissions.handlePendingPermissionRequest": {"result": {"kind": "approve-once"}},
    "session.tools.handlePendingToolCall": {"result": "late"},
    "session.commands.respondToQueuedCommand": {"result": {"handled": True}},
    "session.ui.handlePendingElicitation": {"result": {"action": "cancel"}},
    "session.ui.handlePendingUserInput": {"response": {"answer": "x", "wasFreeform": True}},
    "session.ui.handlePendingExitPlanMode": {"response": {"approved": True}},
    "session.ui.handlePendingAutoModeSwitch": {"response": "no"},
    "session.ui.handlePendingSampling": {"response": {}},
    "session.ui.handlePendingSessionLimitsExhausted": {"response": {"action": "cancel"}},
    "session.mcp.oauth.handlePendingRequest": {"result": {"kind": "cancelled"}},
    "session.mcp.headers.handlePendingHeadersRefreshRequest": {"result": {"kind": "none"}},
}


@pytest.mark.parametrize("method", GONE)
async def test_an_answer_to_a_question_nobody_asks_is_not_an_error(sdk: Sdk, method: str) -> None:
    async with talking(sdk, [DONE]) as talk:
        params = {"sessionId": talk.session.session_id, "requestId": "gone", **GONE[method]}
        assert await talk.client._client.request(method, params) == {"success": False}


async def test_the_end_of_a_command_that_nobody_waits_for_is_accepted(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        ended = rpc.CommandsHandlePendingCommandRequest(request_id="gone")
        assert (await talk.session.rpc.commands.handle_pending_command(ended)).success
