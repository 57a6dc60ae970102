"""Public MCP servers from npm and PyPI, each used by a model in a run of the program."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from gitkit import git, make_repository
from mcpkit import configure
from programkit import FOREIGN

pytestmark = pytest.mark.foreign("mcp-servers")


def npm(folder: str, program: str, *args: str) -> dict[str, Any]:
    binary = FOREIGN / folder / "node_modules" / ".bin" / program
    return {"command": str(binary), "args": list(args), "slowConnectionThresholdMs": 60_000}


def pypi(program: str, *args: str) -> dict[str, Any]:
    binary = FOREIGN / program / "bin" / program
    return {"command": str(binary), "args": list(args), "slowConnectionThresholdMs": 60_000}


ENTITY = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
THOUGHT = {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
SERVERS: dict[str, tuple[dict[str, Any], str, dict[str, Any], str]] = {
    "everything": (
        npm("mcp-everything", "mcp-server-everything"),
        "echo",
        {"message": "hello there"},
        "hello there",
    ),
    "filesystem": (
        npm("mcp-filesystem", "mcp-server-filesystem", "{cwd}"),
        "read_text_file",
        {"path": "{cwd}/note.txt"},
        "some words",
    ),
    "memory": (
        npm("mcp-memory", "mcp-server-memory"),
        "create_entities",
        {"entities": [ENTITY]},
        "Ada",
    ),
    "thinking": (
        npm("mcp-thinking", "mcp-server-sequential-thinking"),
        "sequentialthinking",
        THOUGHT,
        "thoughtNumber",
    ),
    "time": (
        pypi("mcp-server-time", "--local-timezone", "UTC"),
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "21:00",
    ),
    "git": (pypi("mcp-server-git"), "git_status", {"repo_path": "{cwd}"}, "note.txt"),
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    make_repository(cli.cwd)
    (cli.cwd / "note.txt").write_text("some words\n")
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "first")
    cli.env["MEMORY_FILE_PATH"] = str(tmp_path / "memory.jsonl")
    return cli


async def use(cli: Cli, name: str, entry: dict[str, Any], tool: str, args: Any) -> str:
    """Have a model call a tool of a server; return the result it reads."""
    filled = json.loads(json.dumps([entry, args]).replace("{cwd}", str(cli.cwd)))
    configure(cli.home / "mcp-config.json", **{name: filled[0]})
    call = {"tools": [{"name": f"{name}-{tool}", "arguments": filled[1]}]}
    async with serving([call, "done"]) as server:
        ran = await cli.use(server).run("-p", "go", "--output-format", "json", "--allow-all")
        assert ran.code == 0, ran.notes
        return str(server.requests[-1].json["messages"][-1]["content"])


@pytest.mark.parametrize("name", SERVERS)
async def test_a_public_server_works(cli: Cli, name: str) -> None:
    entry, tool, args, told = SERVERS[name]
    assert told in await use(cli, name, entry, tool, args)


async def test_a_public_server_works_over_http(cli: Cli) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = FOREIGN / "mcp-everything" / "node_modules" / ".bin" / "mcp-server-everything"
    process = await asyncio.create_subprocess_exec(
        str(program),
        "streamableHttp",
        env={**cli.env, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while b"listening" not in (await process.stderr.readline()).lower():
                assert process.returncode is None
        url = f"http://127.0.0.1:{port}/mcp"
        entry = {"type": "http", "url": url, "slowConnectionThresholdMs": 60_000}
        assert "hi" in await use(cli, "web", entry, "echo", {"message": "hi"})
    finally:
        process.kill()
        await process.wait()
