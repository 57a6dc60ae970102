"""The official npm client, and the examples of the guide."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from clikit import TRIMTAB
from clikit import serving as serving_models
from githubkit import TOKEN, GitHub
from programkit import FOREIGN
from sdkcalls import AGENTS, NEWER, SCENARIOS, SKILL, replies_of
from sdkkit import serving

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
OWN = re.findall(r'^    "(.+?)": ', (HERE / "sdk_scenarios.mjs").read_text(), re.MULTILINE)
CALLS = {name: steps for name, steps in SCENARIOS.items() if name not in NEWER}
WEATHER = [
    {"tools": [{"name": "weather", "arguments": {"city": "Bonn"}}]},
    {"text": "Sunny, says the tool."},
]


async def run(*args: str, cwd: Path, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *args,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(280):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    return out.decode()


def environment(folder: Path, server: Any) -> dict[str, str]:
    """Return variables that lead to a stand-in for GitHub's service, or to another service."""
    env = {
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COPILOT_HOME": str(folder / "state"),
        "TRIMTAB_LOCAL_SERVERS": "off",
        "TRIMTAB": TRIMTAB,
    }
    if isinstance(server, GitHub):
        return env | {"COPILOT_DEBUG_GITHUB_API_URL": server.url, "GH_TOKEN": TOKEN}
    return env | {"COPILOT_PROVIDER_BASE_URL": server.base_url, "COPILOT_MODEL": "scripted"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which node finds the npm client."""
    folder = tmp_path_factory.mktemp("npm")
    (folder / "node_modules").symlink_to(FOREIGN / "copilot-sdk" / "node_modules")
    return folder


@pytest.fixture(scope="module")
def outcomes(package: Path) -> dict[str, str | None]:
    """What became of each scenario; all of them run in one process, one after another."""

    async def play() -> str:
        for name in ("project", "state"):
            (package / name).mkdir()
        shutil.copy(HERE / "sdk_scenarios.mjs", package)
        async with serving([{"text": "unused"}]) as server:
            env = environment(package, server) | {
                "MODEL": server.url,
                "PROJECT": str(package / "project"),
                "STATE": str(package / "state"),
            }
            return await run("node", "sdk_scenarios.mjs", cwd=package, env=env)

    lines = [json.loads(line) for line in asyncio.run(play()).splitlines()]
    return {line["name"]: line["error"] for line in lines}


@pytest.mark.foreign("copilot-sdk")
@pytest.mark.parametrize("name", OWN)
def test_with_the_npm_client(outcomes: dict[str, str | None], name: str) -> None:
    assert outcomes[name] is None


def encode_table() -> str:
    """Return the table of calls as JSON, for the client of another language."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(entry) for name, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(entry) for entry in value]
        return "..." if value is ... else value

    scenarios = {
        name: {"steps": plain(steps), "replies": replies_of(steps)} for name, steps in CALLS.items()
    }
    return json.dumps({"scenarios": scenarios, "skill": SKILL, "agents": AGENTS})


@pytest.fixture(scope="module", params=["stdio", "tcp"])
def answers(package: Path, request: pytest.FixtureRequest) -> dict[str, str | None]:
    """What became of each scenario of the table of calls, each with a server of its own."""
    transport = str(request.param)
    folder = package / transport
    folder.mkdir()

    async def play() -> str:
        shutil.copy(HERE / "sdk_calls.mjs", package)
        (folder / "table.json").write_text(encode_table())
        async with serving([{"text": "unused"}]) as server:
            env = environment(folder, server) | {
                "MODEL": server.url,
                "FOLDER": str(folder),
                "TABLE": str(folder / "table.json"),
                "TRANSPORT": transport,
            }
            return await run("node", "sdk_calls.mjs", cwd=package, env=env)

    lines = [json.loads(line) for line in asyncio.run(play()).splitlines()]
    return {line["name"]: line["error"] for line in lines}


@pytest.mark.foreign("copilot-sdk")
@pytest.mark.parametrize("name", CALLS)
def test_typed_calls_with_the_npm_client(answers: dict[str, str | None], name: str) -> None:
    assert answers[name] is None


async def test_the_python_example_runs(tmp_path: Path) -> None:
    async with serving_models(WEATHER) as server:
        env = environment(tmp_path, server)
        out = await run(sys.executable, str(EXAMPLES / "copilot_sdk.py"), cwd=tmp_path, env=env)
        assert out == "Sunny, says the tool.\n"
        assert "It is sunny in Bonn." in str(server.requests[-1].json)


@pytest.mark.foreign("copilot-sdk")
async def test_the_typescript_example_runs(package: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "copilot_sdk.ts", package / "example.mjs")  # its types are inferred
    async with serving_models(WEATHER) as server:
        out = await run("node", "example.mjs", cwd=package, env=environment(tmp_path, server))
        assert out == "Sunny, says the tool.\n"
