"""Every method that the server handles, called with the official client's own types."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mcp_fixtures
from githubkit import OTHER_TOKEN, TOKEN
from gitkit import git, make_repository
from mcpkit import PATIENT
from sdkcalls import AGENTS, SKILL
from sdkkit import Sdk, Talk, make_tool, talking
from sdkshapes import client_methods, read_answer, sample, unread_fields

DONE = {"text": "Done."}
TABLE = Path(__file__).parents[2] / "docs" / "sdk-methods.tsv"
SERVER = {"serverName": "rich"}
FIRST = (
    "mcp.config.add",
    "mcp.config.update",
    "session.plan.update",
    "session.workspaces.createFile",
    "session.queue.setDrainPaused",
)
"""Methods that make what others read."""
LAST = (
    "session.mcp.disable",
    "session.mcp.enable",
    "session.mcp.stopServer",
    "session.tools.set",
    "session.history.compact",
    "session.history.truncate",
    "session.shutdown",
    "sessions.close",
)
"""Methods that end what others need."""
LEFT_OUT = {
    "connect": "the client has connected",
    "runtime.shutdown": "nothing answers after it",
    "llmInference.setProvider": "it takes the models away",
    "sessionFs.setProvider": "it moves the files of sessions",
    "session.sendAndWait": "the queue is paused",
    "session.suspend": "it closes the session",
    "session.fleet.start": "it works beside the others",
}
REFUSED = {
    "agentRegistry.spawn": "not enabled",
    "plugins.install": "no such folder",
    "session.plugins.install": "no such folder",
    "session.plugins.marketplaces.add": "no such folder",
    "session.plugins.marketplaces.browse": "not found",
    "session.plugins.marketplaces.remove": "not found",
    "session.plugins.uninstall": "is not installed",
    "session.plugins.update": "is not installed",
    "plugins.marketplaces.add": "no such folder",
    "plugins.marketplaces.browse": "not found",
    "plugins.marketplaces.remove": "not found",
    "plugins.uninstall": "is not installed",
    "plugins.update": "is not installed",
    "plugins.builtin.set": "while sessions are active",
    "extensions.disable": "not available",
    "extensions.enable": "not available",
    "session.extensions.disable": "not available",
    "session.extensions.enable": "not available",
    "session.extensions.reload": "not available",
    "session.extensions.sendAttachmentsToMessage": "Only an extension",
    "session.canvas.action.invoke": "is not open",
    "session.canvas.close": "is not open",
    "session.canvas.open": "is registered",
    "session.mcp.apps.callTool": "capability is not available",
    "session.mcp.apps.listTools": "capability is not available",
    "session.mcp.apps.readResource": "capability is not available",
    "session.mcp.oauth.login": "nobody signs in",
    "session.queue.duplicateAt": "No waiting prompt",
    "session.remote.enable": "Remote control needs",
    "session.tasks.readOutput": "No command has the id",
    "session.tasks.update": "TASK_NOT_FOUND",
    "session.ui.elicitation": "No client of this session can show a form",
    "sessions.connect": "no remote session",
    "sessions.delete": "Session file not found",
    "sessions.startRemoteControl": "Remote control needs",
}
"""Calls that must fail here, with a part of the error's text."""
ADDITIONS = {
    "models.list": ("models.",),
    "session.mcp.list": ("servers.transport",),
    "session.mcp.listTools": ("tools.inputSchema",),
    "session.tools.getBuiltinDescriptors": ("tools.inputSchema.",),
    "session.tools.getCurrentMetadata": ("tools.source",),
    "session.workspaces.readCheckpoint": ("status",),
    "sessions.readPersistedEvents": ("events.data.",),
    **dict.fromkeys(
        ("sessions.list", "sessions.getMetadata", "sessions.enrichMetadata"),
        ("sessions.context.headCommit", "session.context.headCommit"),
    ),
}
"""Fields that the reference or this server adds to the client's types."""


def given(facts: dict[str, str]) -> dict[str, Any]:
    """Return parameters that are better than a sample of their type."""
    cwd, session, event, last = (facts[name] for name in ("cwd", "id", "event", "last"))
    about = {"sessionId": session}
    times = {"startTime": "2026-01-01T00:00:00.000Z", "modifiedTime": "2026-01-01T00:00:00.000Z"}
    local = {"command": "true", "args": [], "tools": ["*"]}
    return {
        "account.login": {
            "host": "https://github.com",
            "token": OTHER_TOKEN,
            "login": "second-user",
        },
        "mcp.config.add": {"name": "sea", "config": local},
        "mcp.config.update": {"name": "sea", "config": local},
        "mcp.config.remove": {"name": "sea"},
        "session.agent.select": {"name": "mate"},
        "session.agent.setPrompt": {"id": "mate", "prompt": "Help."},
        "session.debug.collectLogs": {
            "destination": {"kind": "directory", "outputDirectory": f"{cwd}/logs"}
        },
        "session.permissions.locations.addToolApproval": {
            "locationKey": cwd,
            "approval": {"kind": "write"},
        },
        "session.permissions.modifyRules": {"scope": "session"},
        "session.permissions.paths.updatePrimary": {"path": cwd},
        "session.permissions.folderTrust.addTrusted": {"path": cwd},
        "session.sendMessages": {"messages": [{"prompt": "later"}]},
        "session.commands.enqueue": {"command": "/help"},
        "session.commands.invoke": {"name": "help"},
        "session.commands.respondToQueuedCommand": {"requestId": "x", "result": {"handled": True}},
        "session.eventLog.registerInterest": {"eventType": "user.message"},
        "session.gitHubAuth.setCredentials": {
            "credentials": {"type": "token", "host": "https://github.com", "token": TOKEN}
        },
        "session.history.previewRewind": {"eventId": last},
        "session.history.rewind": {"eventId": last, "mode": "conversation"},
        "session.history.truncate": {"eventId": event},
        **{
            f"session.mcp.{name}": SERVER
            for name in (
                "disable",
                "enable",
                "isServerRunning",
                "listTools",
                "startServer",
                "stopServer",
                "restartServer",
                "oauth.login",
                "resources.list",
                "resources.listTemplates",
                "prompts.list",
                "apps.diagnose",
            )
        },
        "session.mcp.resources.read": {**SERVER, "uri": "test://static-text"},
        "session.mcp.prompts.get": {**SERVER, "promptName": "test_simple_prompt"},
        "session.mcp.executeSampling": {
            **SERVER,
            "requestId": "s",
            "mcpRequestId": "1",
            "request": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
                "maxTokens": 10,
            },
        },
        "session.metadata.contextInfo": {"promptTokenLimit": 100_000, "outputTokenLimit": 1_000},
        "session.metadata.recordContextChange": {"context": {"cwd": cwd, "branch": "b"}},
        "session.metadata.setWorkingDirectory": {"workingDirectory": cwd},
        "session.model.setReasoningEffort": {"reasoningEffort": "low"},
        "session.model.switchTo": {"modelId": "other-model"},
        "session.permissions.handlePendingPermissionRequest": {
            "requestId": "x",
            "result": {"kind": "approve-once"},
        },
        "session.permissions.paths.add": {"path": cwd},
        "session.queue.insertAt": {"message": {"prompt": "later"}, "position": 0},
        "session.shell.exec": {"command": "true"},
        "session.shell.executeUserRequested": {"command": "true", "requestId": "r"},
        "session.skills.disable": {"name": "knots"},
        "session.skills.enable": {"name": "knots"},
        "session.tasks.startAgent": {"agentType": "explore", "name": "scout", "prompt": "look"},
        "session.workspaces.createFile": {"path": "a.txt", "content": "x"},
        "session.workspaces.readFile": {"path": "a.txt"},
        "session.workspaces.renamePath": {"source": "a.txt", "destination": "b.txt"},
        "session.workspaces.statFile": {"path": "b.txt"},
        "session.workspaces.diff": {"mode": "unstaged"},
        "sessions.checkInUse": {"sessionIds": [session]},
        "sessions.enrichMetadata": {"sessions": [{**about, **times, "isRemote": False}]},
        "sessions.findByPrefix": {"prefix": session},
        **{
            f"sessions.{name}": about
            for name in (
                "close",
                "fork",
                "getBoardEntryCount",
                "getPersistedRemoteSteerable",
                "readPersistedEvents",
                "getEventFilePath",
                "getMetadata",
                "loadDeferredRepoHooks",
                "releaseLock",
                "reloadPluginHooks",
                "save",
            )
        },
        "sessions.open": {"kind": "resumeLast"},
        "sessions.startRemoteControl": {**about, "config": {}},
        "sessions.transferRemoteControl": {"toSessionId": session},
        "user.settings.set": {"settings": {"theme": "dark", "disabledSkills": ["x"]}},
    }


def handled() -> Iterator[str]:
    """Yield the methods that the table says are handled and the client has, in a useful order."""
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    known = {name for name, status, _ in rows if status != "unknown"} & client_methods().keys()
    yield from FIRST
    yield from sorted(known - {*FIRST, *LAST, *LEFT_OUT})
    yield from LAST


async def call(talk: Talk, name: str, params: dict[str, Any]) -> Any:
    about = {"sessionId": talk.session.session_id} if name.startswith("session.") else {}
    async with asyncio.timeout(50):
        return await talk.client._client.request(name, {**params, **about})


def find_problem(name: str, raw: Any) -> str:
    """Return what the client would miss or lose of an answer, or ""."""
    try:
        read = read_answer(name, raw)
    except Exception as error:
        return f"{raw!r:.200} is not read: {error!r}"
    if not hasattr(read, "to_dict"):
        return ""
    unread = unread_fields(raw, read.to_dict())
    lost = [field for field in unread if not field.startswith(ADDITIONS.get(name, "\0"))]
    return f"unknown to the client: {lost}" if lost else ""


async def try_method(talk: Talk, name: str, params: dict[str, Any]) -> str:
    try:
        raw = await call(talk, name, params)
    except Exception as error:
        wanted = REFUSED.get(name)
        return "" if wanted and wanted in str(error) else f"{error!r}"
    return "it must fail" if name in REFUSED else find_problem(name, raw)


@pytest.fixture
def options(sdk: Sdk) -> dict[str, Any]:
    sdk.env["COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"] = "true"
    make_repository(sdk.cwd)
    (sdk.cwd / "f.txt").write_text("a\n")
    git(sdk.cwd, "add", ".")
    git(sdk.cwd, "commit", "-qm", "first")
    (sdk.cwd / "f.txt").write_text("b\n")
    (sdk.home / "skills" / "knots").mkdir(parents=True)
    (sdk.home / "skills" / "knots" / "SKILL.md").write_text(SKILL)
    rich = {"type": "local", "command": sys.executable, "args": [mcp_fixtures.__file__]}
    return {
        "skill_directories": [str(sdk.home / "skills")],
        "custom_agents": AGENTS,
        "tools": [make_tool("mine", "gave")],
        "mcp_servers": {"rich": {**rich, "tools": ["*"], **PATIENT}},
    }


async def test_the_client_reads_every_answer_whole(sdk: Sdk, options: dict[str, Any]) -> None:
    async with talking(sdk, [DONE] * 12, **options) as talk:
        await talk.say("hello")
        await talk.say("again")
        first, second = (
            str(one.id) for one in talk.heard.events if one.type.value == "user.message"
        )
        facts = {"cwd": str(sdk.cwd), "id": talk.session.session_id, "event": first, "last": second}
        params = given(facts)
        problems = {}
        for name in handled():
            what = params.get(name) or sample(client_methods()[name].params)
            if problem := await try_method(talk, name, what):
                problems[name] = problem
        assert problems == {}


async def test_no_method_answers_for_a_session_that_is_closed(sdk: Sdk) -> None:
    async with talking(sdk, []) as talk:
        await talk.session.disconnect()
        facts = {"cwd": str(sdk.cwd), "id": talk.session.session_id, "event": "x", "last": "x"}
        params = given(facts)
        for name in handled():
            if name.count(".") < 2 or not name.startswith("session."):
                continue
            what = params.get(name) or sample(client_methods()[name].params)
            with pytest.raises(Exception, match="Session not found"):
                await call(talk, name, what)


async def test_wrong_parameters_are_an_error_of_the_caller(sdk: Sdk) -> None:
    async with talking(sdk, []) as talk:
        accepted, bugs = [], []
        for name in handled():
            fields = {**sample(client_methods()[name].params)}
            fields.pop("sessionId", None)
            if not fields or name in LAST:
                continue
            wrong = {key: [1] if isinstance(fields[key], str) else "wrong" for key in fields}
            try:
                await call(talk, name, wrong)
                accepted.append(name)
            except Exception as error:
                if "Internal" in str(error):
                    bugs.append(f"{name}: {error}")
        assert bugs == []
        assert accepted == TAKES_ANYTHING


TAKES_ANYTHING = [
    "session.telemetry.setFeatureOverrides",
    "session.visibility.set",
]
"""Methods that do nothing, whatever they are given."""
