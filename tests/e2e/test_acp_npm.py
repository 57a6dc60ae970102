"""Foreign clients: the official npm library, and acpx, a client for people and scripts."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from clikit import TRIMTAB, bash, serving
from programkit import FOREIGN

HERE = Path(__file__).parent
PROGRAM = HERE / "acp_scenarios.mjs"
SCRIPT = {
    "replies": [
        {"when": {"last": "command"}, "repeat": 1, "tools": [bash("touch made")]},
        {"when": {"last": "slow"}, "text": "slow", "delay": 30},
        {"when": {"last": "fail"}, "error": {"status": 400, "message": "no such luck"}},
    ],
    "otherwise": {"text": "hello from the model", "repeat": "forever"},
}
EXPECTED: dict[str, list[Any]] = {
    "initialize": [1, "trimtab"],
    "answer": ["end_turn", "hello from the model"],
    "permission": [1, "touch made"],
    "rejection": ["failed"],
    "statuses": ["pending", "in_progress", "completed"],
    "cancel": ["cancelled"],
    "load": ["hello from the model"],
    "resume": ["", "end_turn"],
    "list": [True],
    "mode": ["interactive", "plan"],
    "option": ["autopilot"],
    "failure": [-32603, True],
    "usage": [True],
}


def environment(folder: Path, server: Any) -> dict[str, str]:
    return {
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COPILOT_HOME": str(folder / "state"),
        "COPILOT_PROVIDER_BASE_URL": server.base_url,
        "COPILOT_MODEL": "scripted",
        "TRIMTAB": TRIMTAB,
        "TRIMTAB_LOCAL_SERVERS": "off",
    }


async def run(*args: str, cwd: Path, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *args,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(100):
        out, err = await process.communicate()
    assert process.returncode == 0, out.decode()[-2000:] + err.decode()[-2000:]
    return out.decode()


def test_every_scenario_of_the_program_is_compared() -> None:
    assert re.findall(r'^    "(.+?)": ', PROGRAM.read_text(), re.MULTILINE) == list(EXPECTED)


@pytest.mark.foreign("acp-sdk")
@pytest.mark.parametrize("name", EXPECTED)
async def test_the_official_npm_client_drives_a_session(tmp_path: Path, name: str) -> None:
    (tmp_path / "node_modules").symlink_to(FOREIGN / "acp-sdk" / "node_modules")
    shutil.copy(PROGRAM, tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    async with serving(SCRIPT) as server:
        env = environment(tmp_path, server)
        out = await run("node", PROGRAM.name, name, str(project), cwd=tmp_path, env=env)
    assert json.loads(out.strip().split("\n")[-1]) == EXPECTED[name]


@pytest.mark.foreign("acpx")
async def test_acpx_answers_once(tmp_path: Path) -> None:
    acpx = str(FOREIGN / "acpx" / "node_modules" / ".bin" / "acpx")
    async with serving(SCRIPT) as server:
        env = environment(tmp_path, server)
        agent = f"{TRIMTAB} --acp"
        flags = ("--agent", agent, "--approve-all", "--format", "quiet")
        out = await run(acpx, *flags, "exec", "answer", cwd=tmp_path, env=env)
        assert "hello from the model" in out
        await run(acpx, *flags, "exec", "command", cwd=tmp_path, env=env)
        assert (tmp_path / "made").exists()


@pytest.mark.foreign("acpx")
async def test_acpx_keeps_a_session_between_prompts(tmp_path: Path) -> None:
    acpx = str(FOREIGN / "acpx" / "node_modules" / ".bin" / "acpx")
    async with serving(SCRIPT) as server:
        env = environment(tmp_path, server)
        flags = ("--agent", f"{TRIMTAB} --acp", "--approve-all", "--ttl", "1")
        await run(acpx, *flags, "sessions", "new", cwd=tmp_path, env=env)
        await run(acpx, *flags, "prompt", "remember the parrot", cwd=tmp_path, env=env)
        await run(acpx, *flags, "prompt", "answer again", cwd=tmp_path, env=env)
        assert "remember the parrot" in str(server.requests[-1].json["messages"])
        await run(acpx, *flags, "sessions", "close", cwd=tmp_path, env=env)
