"""Commands that a person runs through the official SDK, and remote control, which is off."""

import asyncio

import pytest
from copilot import rpc

from sdkkit import Sdk, talking
from toolkit import is_running

DONE = {"text": "Done."}


async def test_a_persons_command_runs_in_the_sessions_folder_and_is_recorded(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        shell = talk.session.rpc.shell
        ask = rpc.ShellExecuteUserRequestedRequest(command="pwd; echo oops >&2", request_id="1")
        ran = await shell.execute_user_requested(ask)
        assert ran.success
        assert ran.exit_code == 0
        assert sorted(ran.output.split()) == sorted([str(sdk.cwd), "oops"])
        await talk.heard.until("tool.execution_complete")
        (ended,) = talk.heard.of("tool.execution_complete")
        assert ended.is_user_requested
        assert ended.tool_call_id == ran.tool_call_id
        assert talk.heard.of("tool.user_requested")[0].arguments == {"command": ask.command}
        await talk.session.send_and_wait("go on")


async def test_a_command_that_fails_says_how(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        ask = rpc.ShellExecuteUserRequestedRequest(command="exit 3", request_id="1")
        ran = await talk.session.rpc.shell.execute_user_requested(ask)
        assert (ran.success, ran.exit_code) == (False, 3)


async def test_a_persons_command_can_be_cancelled_with_its_children(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        shell = talk.session.rpc.shell
        command = "sleep 600 & echo $!; wait"
        ask = rpc.ShellExecuteUserRequestedRequest(command=command, request_id="mine")
        running = asyncio.ensure_future(shell.execute_user_requested(ask))
        await talk.heard.until("tool.shell_output")
        child = int(talk.heard.of("tool.shell_output")[0].text)
        cancel = rpc.ShellCancelUserRequestedRequest(request_id="mine")
        assert (await shell.cancel_user_requested(cancel)).cancelled
        ran = await running
        assert not ran.success
        assert "SIGTERM" in (ran.error or "")
        assert not is_running(child)
        assert not (await shell.cancel_user_requested(cancel)).cancelled


async def test_a_started_command_can_be_killed_once(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        shell = talk.session.rpc.shell
        started = await shell.exec(rpc.ShellExecRequest(command="sleep 600"))
        kill = rpc.ShellKillRequest(process_id=started.process_id)
        assert (await shell.kill(kill)).killed
        async with asyncio.timeout(60):
            while (await shell.kill(kill)).killed:
                pass
        with pytest.raises(Exception, match="no such directory"):
            await shell.exec(rpc.ShellExecRequest(command="true", cwd="nowhere"))


async def test_a_started_command_ends_with_its_time_and_with_its_session(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        shell = talk.session.rpc.shell
        (sdk.cwd / "sub").mkdir()
        wait = "echo $$ > pid; sleep 600"
        nothing = rpc.ShellKillRequest(process_id="none")
        limited = sdk.cwd / "sub" / "pid"
        await shell.exec(rpc.ShellExecRequest(command=wait, cwd="sub", timeout=1000))
        async with asyncio.timeout(60):
            while not limited.exists() or not limited.read_text():
                await shell.kill(nothing)
            while is_running(int(limited.read_text())):
                await shell.kill(nothing)
        await shell.exec(rpc.ShellExecRequest(command=wait))
        async with asyncio.timeout(60):
            while not (sdk.cwd / "pid").exists() or not (sdk.cwd / "pid").read_text():
                await shell.kill(nothing)
        process = int((sdk.cwd / "pid").read_text())
        await talk.session.disconnect()
        assert not is_running(process)


async def test_remote_control_is_off(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        sessions, remote = talk.client.rpc.sessions, talk.session.rpc.remote
        assert (await sessions.get_remote_control_status()).status.to_dict() == {"state": "off"}
        stopped = await sessions.stop_remote_control(rpc.SessionsStopRemoteControlRequest())
        assert stopped.stopped is False
        expecting = rpc.SessionsStopRemoteControlRequest(expected_session_id="other")
        with pytest.raises(Exception, match="not attached"):
            await sessions.stop_remote_control(expecting)
        transfer = rpc.SessionsTransferRemoteControlRequest(to_session_id="other")
        assert (await sessions.transfer_remote_control(transfer)).transferred is False
        enabled = await remote.enable(rpc.RemoteEnableRequest(mode=rpc.RemoteSessionMode.OFF))
        assert enabled.remote_steerable is False
        with pytest.raises(Exception, match="GitHub's service"):
            await remote.enable(rpc.RemoteEnableRequest())
        await remote.disable()
