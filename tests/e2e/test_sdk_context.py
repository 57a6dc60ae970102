"""What a session tells of its folder, and whether it may look at git and at past sessions."""

from pathlib import Path
from typing import Any

import pytest
from copilot.client import SessionListFilter
from copilot.session import PermissionHandler

from gitkit import git, make_repository
from sdkkit import Sdk, Talk, talking, use

DONE = {"text": "Done."}
SEARCH = use("session_store_sql", description="find", query="SELECT session_id FROM turns")
REPOSITORY = {
    "repository": "acme/widgets",
    "hostType": "github",
    "repositoryHost": "github.com",
    "branch": "main",
}


def make_clone(folder: Path) -> None:
    make_repository(folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "remote", "add", "origin", "git@github.com:acme/widgets.git")


async def start_of(talk: Talk) -> dict[str, Any]:
    """The context in the first event of the session."""
    first = (await talk.session.get_events())[0]
    context: dict[str, Any] = first.to_dict()["data"]["context"]
    return context


@pytest.mark.needs("git")
async def test_the_start_names_the_repository_of_the_folder(sdk: Sdk) -> None:
    make_clone(sdk.cwd)
    async with talking(sdk, [DONE]) as talk:
        commit = git(sdk.cwd, "rev-parse", "HEAD").strip()
        about = {"cwd": str(sdk.cwd), "gitRoot": str(sdk.cwd), "headCommit": commit}
        assert await start_of(talk) == {**about, **REPOSITORY}
        workspace = (await talk.session.rpc.workspaces.get_workspace()).workspace
        assert (workspace.repository, workspace.host_type.value) == ("acme/widgets", "github")
        await talk.say("hi")
        wanted = SessionListFilter(repository="acme/widgets")
        (found,) = await talk.client.list_sessions(wanted)
        assert found.context.repository == "acme/widgets"
        assert await talk.client.list_sessions(SessionListFilter(repository="acme/other")) == []


@pytest.mark.needs("git")
async def test_a_session_that_moves_names_the_repository_there(sdk: Sdk) -> None:
    other = sdk.cwd.parent / "other"
    other.mkdir()
    make_clone(other)
    async with talking(sdk, [DONE]) as talk:
        assert "repository" not in await start_of(talk)
        params = {"sessionId": talk.session.session_id, "workingDirectory": str(other)}
        await talk.client._client.request("session.metadata.setWorkingDirectory", params)
        (changed,) = [
            event.to_dict()["data"]
            for event in await talk.session.get_events()
            if event.type.value == "session.context_changed"
        ]
        assert changed.items() >= REPOSITORY.items()


@pytest.mark.needs("git")
async def test_a_session_without_git_on_the_host_knows_nothing_of_the_repository(
    sdk: Sdk,
) -> None:
    make_clone(sdk.cwd)
    async with talking(sdk, [DONE, DONE], enable_host_git_operations=False) as talk:
        assert await start_of(talk) == {"cwd": str(sdk.cwd)}
        await talk.say("hi")
        assert "No git." in talk.system()
        workspace = (await talk.session.rpc.workspaces.get_workspace()).workspace
        assert (workspace.git_root, workspace.branch, workspace.repository) == (None, None, None)
        session = await talk.client.create_session(
            on_permission_request=PermissionHandler.approve_all, enable_host_git_operations=True
        )
        await session.send_and_wait("hi", timeout=60)
        assert f"Git root: {sdk.cwd}, branch: main" in talk.system()


async def test_past_sessions_can_be_searched_if_the_client_wants_it(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, SEARCH, DONE], enable_session_store=True) as talk:
        await talk.say("remember the word cormorant")
        await talk.say("search")
        assert "session_store_sql" in talk.tool_names()
        assert talk.session.session_id in talk.tool_results()[-1]


async def test_a_session_that_is_kept_out_of_the_store_cannot_be_found(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE, SEARCH, DONE], enable_session_store=False) as talk:
        await talk.say("the secret word")
        assert "session_store_sql" not in talk.tool_names()
        approve = PermissionHandler.approve_all
        session_id = talk.session.session_id
        await talk.session.disconnect()
        kept_out = await talk.client.resume_session(session_id, on_permission_request=approve)
        await kept_out.send_and_wait("again", timeout=60)
        await kept_out.disconnect()
        session = await talk.client.create_session(
            on_permission_request=approve, enable_session_store=True
        )
        await session.send_and_wait("search", timeout=60)
        (result,) = talk.tool_results()
        assert session.session_id in result
        assert session_id not in result


async def test_a_tool_that_is_asked_for_by_name_cannot_read_a_store_that_is_off(sdk: Sdk) -> None:
    tools = ["view", "session_store_sql"]
    async with talking(sdk, [DONE], available_tools=tools, enable_session_store=False) as talk:
        await talk.say("hi")
        assert talk.tool_names() == ["view"]
