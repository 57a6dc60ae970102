"""Live sessions reached from other processes: the socket, `trimtab tasks`, `trimtab attach`."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from acpkit import connected
from clikit import Cli, bash, serving
from rpckit import Raw
from trimtab.host.session_socket import NAME, connect, find_user, short_path
from tuikit import open_terminal

DONE = {"text": "All done."}


def on(last: str, **step: Any) -> dict[str, Any]:
    return {"when": {"last": last}, "repeat": 1, **step}


def script(*rules: Any) -> dict[str, Any]:
    return {"replies": list(rules), "otherwise": DONE}


def start(prompt: str, **more: Any) -> dict[str, Any]:
    arguments = {
        "description": "a part of it",
        "prompt": prompt,
        "agent_type": "general-purpose",
        "mode": "background",
        **more,
    }
    return {"name": "task", "arguments": arguments}


class Headless:
    """A run with `-p` whose events are read as they come."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []

    async def until(self, kind: str, text: str = "") -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            async for line in self.process.stdout:
                self.events.append(json.loads(line))
                if self.events[-1]["type"] == kind and text in line.decode():
                    return self.events[-1]
        raise AssertionError(f"{kind} never came: {[e['type'] for e in self.events]}")

    async def ends(self) -> int:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            async for line in self.process.stdout:
                self.events.append(json.loads(line))
            return await self.process.wait()

    @property
    def agent(self) -> str:
        (started,) = [e for e in self.events if e["type"] == "subagent.started"][:1]
        return str(started["agentId"])


@asynccontextmanager
async def running(cli: Cli, *args: str, allow: str = "--allow-all") -> AsyncIterator[Headless]:
    process = await cli.start("-p", "go", "--output-format", "json", allow, *args)
    try:
        yield Headless(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def tasks(cli: Cli, *args: str) -> Any:
    outcome = await cli.run("tasks", *args, "--json")
    return outcome.code, json.loads(outcome.out)


SLEEPING = script(
    on("go", tools=[start("Sleep.", name="sleeper")]),
    on("Sleep", tools=[bash("until [ -e go ]; do sleep 0.02; done; echo slept")]),
    on("works in the background", tools=[bash("until [ -e main ]; do sleep 0.02; done")]),
)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def read_log(cli: Cli) -> list[dict[str, Any]]:
    (log,) = cli.logs()
    return [json.loads(line) for line in log.read_text().splitlines()]


def find_socket(cli: Cli) -> Path:
    (found,) = cli.home.glob(f"session-state/*/{NAME}")
    return found


async def test_a_running_session_has_a_socket_for_its_owner_alone(cli: Cli) -> None:
    async with serving(SLEEPING) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start", "until [ -e main")
        path = find_socket(cli)
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with connect(str(path.parent)) as connection:
            assert find_user(connection) == os.geteuid()
        (cli.cwd / "go").touch()
        (cli.cwd / "main").touch()
        assert await run.ends() == 0
        assert not path.exists()


@pytest.mark.needs("setpriv")
async def test_another_user_does_not_get_in(cli: Cli, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    probe = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(5); "
        "s.connect(sys.argv[1]); s.sendall(b'Content-Length: 2\\r\\n\\r\\n{}'); print(len(s.recv(9)))"
    )
    async with serving(SLEEPING) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start")
        path = find_socket(cli)
        path.chmod(0o666)  # so that only the check of the user is left
        for folder in (path.parent, *path.parent.parents):
            if folder.stat().st_uid == os.geteuid() and len(folder.parts) > 2:
                folder.chmod(0o755)
        command = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-I", "-c", probe]
        done = await asyncio.to_thread(
            subprocess.run, [*command, str(path)], capture_output=True, text=True, check=False
        )
        code, _ = await tasks(cli)
        assert code == 0
    assert done.stdout.strip() in ("", "0"), done.stdout


async def test_a_long_path_and_a_socket_that_a_kill_left_are_no_obstacle(tmp_path: Path) -> None:
    cli = Cli(tmp_path / ("deep" * 20) / ("down" * 20))
    async with serving(SLEEPING) as server:
        async with running(cli.use(server)) as run:
            await run.until("tool.execution_start")
            assert len(str(find_socket(cli))) > 160
            _, listed = await tasks(cli)
            assert listed["tasks"][0]["status"] == "running"
            run.process.send_signal(signal.SIGKILL)
            await run.process.wait()
        assert find_socket(cli).exists()
        assert await tasks(cli) == (0, {"tasks": []})
        resumed = await cli.ask("again", "--resume", find_socket(cli).parent.name)
        assert resumed.code == 0
        assert list(cli.home.glob(f"session-state/*/{NAME}")) == []


def test_a_long_path_is_reached_without_proc_too(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with short_path(str(folder)) as short:
        assert len(short) < 60
        assert os.path.samefile(short, folder)


async def test_tasks_of_all_live_sessions_are_listed_written_to_and_stopped(cli: Cli) -> None:
    async with serving(SLEEPING) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start", "until [ -e main")
        await run.until("tool.execution_start", "until [ -e go")
        code, listed = await tasks(cli)
        main, agent, *shells = listed["tasks"]
        assert code == 0
        assert main["id"] == main["sessionId"] == agent["sessionId"]
        assert (main["type"], agent["type"]) == ("agent", "agent")
        assert (agent["id"], agent["status"]) == (run.agent, "running")
        assert {shell["type"] for shell in shells} == {"shell"}
        assert (await tasks(cli, "send", run.agent[:8], "Hurry."))[1]["sent"]
        (queued,) = [line for line in read_log(cli) if "Hurry." in json.dumps(line)]
        assert (queued["type"], queued["agentId"]) == ("trimtab.prompt_queued", run.agent)
        code, answer = await tasks(cli, "stop", run.agent)
        assert (code, answer["stopped"]) == (0, True)
        async with asyncio.timeout(50):
            ended = await run.until("subagent.completed")
        assert ended["data"]["cancelled"]
        code, answer = await tasks(cli, "stop", run.agent)
        assert code == 1
        assert "is not running (it is cancelled)" in answer["error"]["message"]
        code, answer = await tasks(cli, "send", "nobody", "Hurry.")
        assert code == 1
        assert "No task of a live session" in answer["error"]["message"]
        (cli.cwd / "main").touch()
        assert await run.ends() == 0


async def test_stopping_a_sessions_id_stops_its_main_agent(cli: Cli) -> None:
    rules = script(on("go", tools=[bash("sleep 300")]))
    async with serving(rules) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start")
        session = find_socket(cli).parent.name
        assert (await tasks(cli, "stop", session))[0] == 0
        assert await run.ends() == 130


async def test_tail_shows_what_an_agent_did_and_follows_it_to_its_end(cli: Cli) -> None:
    async with serving(SLEEPING) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start", "until [ -e go")
        follower = await cli.start("tasks", "tail", run.agent, "--follow")
        assert follower.stdout is not None
        async with asyncio.timeout(60):
            first = (await follower.stdout.readline()).decode()
        assert first == "> Sleep.\n"
        (cli.cwd / "go").touch()
        async with asyncio.timeout(60):
            rest = (await follower.stdout.read()).decode()
            assert await follower.wait() == 0
        assert "* bash until [ -e go ]" in rest
        assert "All done." in rest
        (cli.cwd / "main").touch()
        assert await run.ends() == 0


async def test_tail_shows_the_output_of_a_command(cli: Cli) -> None:
    serve = bash("echo ready; until [ -e go ]; do sleep 0.02; done; echo over")
    serve["arguments"] |= {"mode": "async", "shellId": "server"}
    other = bash("until [ -e end ]; do sleep 0.02; done")
    other["arguments"] |= {"mode": "async", "shellId": "other"}
    rules = script(on("go", tools=[serve, other]))
    async with serving(rules) as server, running(cli.use(server)) as run:
        await run.until("session.background_tasks_changed")
        follower = await cli.start("tasks", "tail", "server", "--follow")
        assert follower.stdout is not None
        async with asyncio.timeout(60):
            assert (await follower.stdout.readline()).decode() == "ready\n"
            (cli.cwd / "go").touch()
            assert (await follower.stdout.read()).decode() == "over\n"
            await follower.wait()
        (cli.cwd / "end").touch()
        assert await run.ends() == 0


async def followed(attached: asyncio.subprocess.Process) -> None:
    """Wait until a client that was attached has had its prompt accepted."""
    assert attached.stdout is not None
    async with asyncio.timeout(60):
        async for line in attached.stdout:
            if b"trimtab.prompt_queued" in line:
                return


@pytest.mark.proves("VSC-17")
async def test_attach_steers_a_busy_session_and_prompts_an_idle_one(cli: Cli) -> None:
    rules = script(
        on("go", tools=[bash("until [ -e go ]; do sleep 0.02; done")]),
        on("Faster", text="Hurrying."),
        on("And now", text="Now this."),
    )
    late = bash("until [ -e end ]; do sleep 0.02; done")
    late["arguments"] |= {"mode": "async", "shellId": "late"}
    rules["replies"][0]["tools"].append(late)
    async with serving(rules) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start")
        session = find_socket(cli).parent.name
        attached = await cli.start("attach", session, "--json", stdin_fd=asyncio.subprocess.PIPE)
        assert attached.stdin is not None
        attached.stdin.write(b"Faster, please.\n")
        await attached.stdin.drain()
        await followed(attached)
        (cli.cwd / "go").touch()
        steered = await run.until("user.message", "Faster")
        assert steered["data"]["delivery"] == "steering"
        await run.until("assistant.idle")
        attached.stdin.write(b"And now?\n")
        attached.stdin.close()
        said = await run.until("user.message", "And now")
        assert said["data"]["delivery"] != "steering"
        async with asyncio.timeout(60):
            seen, _ = await attached.communicate()
        assert attached.returncode == 0
        assert b"Now this." in seen
        (cli.cwd / "end").touch()
        assert await run.ends() == 0


async def test_attach_stops_a_run_and_says_when_nobody_hosts_the_session(cli: Cli) -> None:
    rules = script(on("go", tools=[bash("sleep 300")]))
    async with serving(rules) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start")
        session = find_socket(cli).parent.name
        outcome = await cli.run("attach", session, stdin=b"/stop\n/quit\n")
        assert outcome.code == 0, outcome.notes
        assert await run.ends() == 130
    outcome = await cli.run("attach", session)
    assert outcome.code == 2
    assert f"trimtab --resume {session}" in outcome.notes


async def test_attach_answers_a_question_of_the_terminal(cli: Cli) -> None:
    rules = script(on("go", tools=[bash("touch made")]))
    async with serving(rules) as server, open_terminal(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("go\r")
        await terminal.sees("touch made")
        session = find_socket(cli).parent.name
        outcome = await cli.run("attach", session, stdin=b"y\n")
        assert outcome.code == 0, outcome.notes
        assert "touch made" in outcome.notes
        await terminal.sees("All done")
        assert (cli.cwd / "made").exists()
        terminal.type("\x04")
        assert await terminal.ends() == 0


async def test_sessions_of_the_rpc_server_and_of_editors_are_reached_too(cli: Cli) -> None:
    async with serving(script()) as server:
        cli.use(server)
        raw = await Raw.start(cli)
        created = await raw.call("session.create", workingDirectory=str(cli.cwd))
        session = created["result"]["sessionId"]
        outcome = await cli.run("attach", session, stdin=b"Hello.\n")
        assert outcome.text == "All done.\n", outcome.notes
        assert await raw.end() == 0
        async with connected(cli) as link:
            await link.open()
            _, listed = await tasks(cli)
            (main,) = listed["tasks"]
            outcome = await cli.run("attach", main["id"], stdin=b"Hello.\n")
            assert outcome.text == "All done.\n", outcome.notes


async def test_a_client_of_the_socket_cannot_close_the_session_of_another_process(
    cli: Cli,
) -> None:
    async with serving(SLEEPING) as server, running(cli.use(server)) as run:
        await run.until("tool.execution_start", "until [ -e main")
        path = find_socket(cli)
        with connect(str(path.parent)) as connection:
            connection.setblocking(True)
            connection.settimeout(50)
            session = path.parent.name
            for number, method in enumerate(
                ("session.destroy", "session.create", "session.resume")
            ):
                params = {"sessionId": session if number != 1 else "other"}
                body = json.dumps(
                    {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                ).encode()
                connection.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            received = b""
            while received.count(b'"id":') < 3:
                received += connection.recv(65536)
        assert b"This socket serves one session" in received
        (cli.cwd / "go").touch()
        (cli.cwd / "main").touch()
        assert await run.ends() == 0
        assert not [e for e in run.events if e["type"] == "abort"]


def test_a_headless_start_does_not_import_the_server_of_the_socket(tmp_path: Path) -> None:
    code = "import trimtab.cli.start, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "trimtab.cli.session_socket" in loaded
    assert not [name for name in loaded if name.startswith("trimtab.transports.rpc")]
    assert "trimtab.host.hosted" not in loaded


async def test_a_session_whose_folder_takes_no_socket_warns_and_works(cli: Cli) -> None:
    async with serving([DONE, DONE]) as server:
        cli.use(server)
        first = await cli.ask("go")
        session = first.result["sessionId"]
        obstacle = cli.home / "session-state" / session / NAME
        obstacle.mkdir()
        outcome = await cli.ask("go", "--resume", session)
    assert outcome.code == 0
    assert "Other processes cannot reach this session" in outcome.text
