"""Requests of a hosted session: their lifecycle, and the metadata beside the log."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from gitkit import git, make_repository
from livekit import Watch, opened
from loopkit import call
from trimtab import LiveSession
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.session import SessionError
from trimtab.contracts.options import CustomizationOptions, Isolation, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.contracts.run import Prompt
from trimtab.host.metadata import RequestDetails, SessionMetadata, read_metadata
from trimtab.host.opened import follow_requests
from trimtab.host.session_state import describe_state, read_state

PROPOSED = "https://github.com/owner/project/pull/7"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")
    return folder


def run(command: str, call_id: str) -> dict[str, Any]:
    return {**call("bash", command=command, description="x"), "id": call_id}


def stored(live: LiveSession) -> SessionMetadata:
    found = read_metadata(live.folder)
    assert found is not None
    return found


async def overlap(live: LiveSession, watch: Watch) -> list[RequestDetails]:
    """Send a prompt, queue a second one, and steer the first while its command runs."""
    follow_requests(live)
    live.send("make a file")
    await watch.saw("trimtab.tool_running")
    live.send("and then a third")
    live.send(Prompt(text="a second one too", mode="immediate"))
    (Path(live.controls.options.cwd) / "go").touch()
    async with asyncio.timeout(60):
        await live.finished()
    return list(stored(live).requests.values())


OVERLAPPING = [
    {"tools": [run("echo 1 > 1.txt; while [ ! -e go ]; do sleep 0.05; done", "c1")]},
    {"tools": [run(f"echo 2 > 2.txt; echo {PROPOSED} # gh pr create", "c2")]},
    {"text": "Both are there."},
    {"tools": [run("echo 3 > 3.txt", "c3")]},
    {"text": "All three."},
]


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-27")
async def test_requests_that_overlap_have_checkpoints_commits_and_pull_requests_of_their_own(
    project: Path,
) -> None:
    async with opened(project, OVERLAPPING, isolation=Isolation(name="fix"), trust_folder=True) as (
        live,
        watch,
        _,
    ):
        first, third, second = await overlap(live, watch)
        folder = Path(live.controls.options.cwd)
        ids = list(stored(live).requests)
    assert [request.state for request in (first, second, third)] == ["completed"] * 3
    assert (second.steers, first.steers, third.steers) == (ids[0], "", "")
    assert [list(request.tool_calls) for request in (first, second, third)] == [
        ["c1"],
        ["c2"],
        ["c3"],
    ]
    assert (first.pull_requests, second.pull_requests) == ([], [PROPOSED])
    for number, request in enumerate((first, second, third), 1):
        before = git(folder, "ls-tree", "--name-only", request.checkpoints.start).split()
        after = git(folder, "ls-tree", "--name-only", request.checkpoints.end).split()
        assert (f"{number}.txt" in before, f"{number}.txt" in after) == (False, True)
        assert git(folder, "log", "-1", "--format=%s", request.commit_after).strip() in (
            "make a file",
            "a second one too",
            "and then a third",
        )
    assert first.commit_after == second.commit_before
    assert second.commit_after == third.commit_before
    assert git(folder, "rev-parse", "HEAD").strip() == third.commit_after
    assert git(project, "status", "--porcelain", "--", "a.txt") == ""


@pytest.mark.parametrize("prompt", ["hi", "/commit"])
async def test_a_request_that_ends_with_an_error_has_failed(tmp_path: Path, prompt: str) -> None:
    cli = Cli(tmp_path)
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First")
    (cli.cwd / "a.txt").write_text("a\n")
    async with serving([{"error": {"status": 400, "message": "No way"}}, "again"]) as server:
        failed = await cli.use(server).ask(prompt)
        await cli.ask("once more", "--continue")
    folder = cli.logs()[0].parent
    first, second = json.loads((folder / "host.json").read_text())["requests"].values()
    assert (first["state"], first["error"]) == ("failed", failed.result["error"]["message"])
    assert (second["state"], second.get("error")) == ("completed", None)
    (folder / "host.json").unlink()
    listed = (await cli.run("sessions", "requests", folder.name)).text
    assert "failed" in listed
    assert f"error: {first['error']}" in listed


async def test_an_error_that_did_not_end_the_work_fails_no_request(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"tools": [run("echo 1", "c1")]}, {"text": "Done."}]) as (
        live,
        _,
        _provider,
    ):
        follow_requests(live)

        def complain(event: Event, _line: bytes) -> None:
            if event.type == "user.message":
                live.emit(SessionError(error_type="client", message="A client says so."))

        live.subscribe(complain)
        await live.ask("go")
        (request,) = stored(live).requests.values()
    assert (request.state, request.error) == ("completed", "")


async def test_a_request_that_was_aborted_is_interrupted(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"tools": [run("sleep 50", "c1")]}]) as (live, watch, _provider):
        follow_requests(live)
        asked = asyncio.create_task(live.ask("go"))
        await watch.saw("trimtab.tool_running")
        await live.abort()
        await asked
        (request,) = stored(live).requests.values()
    assert request.state == "interrupted"


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-20", "VSC-21")
async def test_metadata_of_requests_stands_beside_the_log_and_not_in_it(project: Path) -> None:
    agents = project / ".github" / "agents"
    agents.mkdir(parents=True)
    text = "---\ndescription: Writes\n---\nWrite like a poet about zebras.\n"
    (agents / "poet.agent.md").write_text(text)
    (project / ".gitignore").write_text("home\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "agent")
    async with opened(
        project,
        [{"tools": [run("echo 1 > 1.txt", "c1")]}, {"text": "Done."}],
        isolation=Isolation(name="fix"),
        trust_folder=True,
        customize=CustomizationOptions(agent="poet"),
    ) as (live, _, _provider):
        follow_requests(live)
        await live.ask("write")
        metadata, log = stored(live), Path(live.folder.events).read_text()
    assert metadata.worktree is not None
    assert (metadata.worktree.branch, metadata.worktree.repository) == ("trimtab/fix", str(project))
    assert metadata.repository is not None
    assert metadata.repository.branch == "trimtab/fix"
    assert metadata.folders == [metadata.cwd] == [metadata.worktree.path]
    (request,) = metadata.requests.values()
    assert request.tool_calls == {"c1": "bash"}
    assert request.checkpoints.start == f"refs/trimtab/{metadata.session_id}/1-start"
    assert request.checkpoints.end == f"refs/trimtab/{metadata.session_id}/1-end"
    assert request.commit_before == git(project, "rev-parse", "main").strip()
    assert request.commit_after == metadata.repository.commit != request.commit_before
    assert request.mode_instructions is not None
    assert request.mode_instructions.name == "poet"
    assert "zebras" in request.mode_instructions.content
    assert request.commit_after not in log
    assert types_in(log) == types_in(await write_without_host(project))


def types_in(log: str) -> list[str]:
    return [json.loads(line)["type"] for line in log.splitlines()]


async def write_without_host(project: Path) -> str:
    """Return the log of the same session without a host."""
    async with opened(
        project,
        [{"tools": [run("echo 1 > 1.txt", "c1")]}, {"text": "Done."}],
        isolation=Isolation(name="other"),
        trust_folder=True,
        customize=CustomizationOptions(agent="poet"),
    ) as (live, _, _provider):
        await live.ask("write")
        return Path(live.folder.events).read_text()


@pytest.mark.proves("VSC-27")
async def test_a_short_request_has_its_pull_request_too(tmp_path: Path) -> None:
    replies = [{"tools": [run(f"echo {PROPOSED} # gh pr create", "c1")]}, {"text": "Done."}]
    async with opened(tmp_path, replies) as (live, _, _provider):
        follow_requests(live)
        await live.ask("propose it")
    (request,) = stored(live).requests.values()
    assert request.pull_requests == [PROPOSED]


@pytest.mark.proves("VSC-21")
async def test_metadata_is_read_back_and_continued_and_survives_being_lost(tmp_path: Path) -> None:
    replies = [{"text": "one"}, {"text": "two"}]
    async with opened(tmp_path, replies) as (live, _, _provider):
        follow_requests(live)
        await live.ask("first")
        await live.ask("second")
    assert [request.prompt for request in stored(live).requests.values()] == ["first", "second"]
    (Path(live.folder.path) / "host.json").unlink()
    state = read_state(live.folder)
    assert [request.prompt for request in state.metadata.requests.values()] == ["first", "second"]


@pytest.mark.proves("AMSES-02")
async def test_the_state_of_a_session_has_its_turns_open_questions_and_queue(
    tmp_path: Path,
) -> None:
    asked = asyncio.Event()

    async def ask(request_id: str, request: Any) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    replies = [{"text": "hello"}, {"tools": [run("touch x", "c1")]}]
    async with opened(tmp_path, replies, ask, permissions=PermissionOptions()) as (live, _, _p):
        follow_requests(live)
        await live.ask("greet me")
        live.send("make x")
        async with asyncio.timeout(50):
            await asked.wait()
        live.send("then y")
        state = read_state(live.folder)
        await live.abort()
    states = [(request.prompt, request.state) for request in state.metadata.requests.values()]
    assert states == [("greet me", "completed"), ("make x", "running"), ("then y", "queued")]
    (question,) = state.questions
    assert (question.kind, question.question, question.tool_call_id) == (
        "permission",
        "Run this command?",
        "c1",
    )
    assert [(waiting.text, waiting.steering) for waiting in state.queue] == [("then y", False)]
    shown = "\n".join(describe_state(read_state(live.folder)))
    assert "  2  interrupted" in shown
    assert "     make x\n" in shown
    assert "     tools: bash 1 (shell)\n" in shown
    assert "  +  then y" in shown
    assert "?" not in shown  # the call that asked has ended


async def test_a_person_sees_the_requests_of_a_session(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving([{"tools": [run("echo 1 > 1.txt", "c1")]}, {"text": "Done."}]) as server:
        await cli.use(server).ask("write a file", "--allow-all-tools")
    session = cli.logs()[-1].parent.name
    shown = await cli.run("sessions", "requests", session)
    assert shown.code == 0, shown.notes
    assert shown.text.split("\n")[0].startswith("  1  completed  ")
    assert "     write a file\n" in shown.text
    assert "     tools: bash 1 (shell)\n" in shown.text
    listed = json.loads((await cli.run("sessions", "requests", session, "--json")).text)
    (request,) = listed["metadata"]["requests"].values()
    assert request["toolCalls"] == {"c1": "bash"}
