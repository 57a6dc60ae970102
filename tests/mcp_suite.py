"""Runs scenarios of the official MCP suite, which `make foreign` fetches."""

import asyncio
import sys
import tempfile
from pathlib import Path

from programkit import FOREIGN

NODE = FOREIGN / "node" / "node_modules" / ".bin" / "node"
FIRST, NEXT = "mcp-conformance", "mcp-conformance-next"
CLIENT = f"{sys.executable} {Path(__file__).with_name('mcp_suite_client.py')}"


async def run_suite(suite: str, *args: str) -> tuple[int, str]:
    """Run a command of a suite; return its exit code and what it printed."""
    program = FOREIGN / suite / "node_modules" / ".bin" / "conformance"
    with tempfile.TemporaryDirectory(prefix="trimtab-suite-") as folder:
        process = await asyncio.create_subprocess_exec(
            str(NODE),
            str(program),
            *args,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(120):
                out, _ = await process.communicate()
        except BaseException:
            process.kill()
            raise
    assert process.returncode is not None
    return process.returncode, out.decode()


async def check_server(suite: str, url: str, scenario: str, version: str = "") -> str:
    """Run a server scenario against an address; return what it printed if a check fails."""
    chosen = ("--spec-version", version) if version else ()
    code, output = await run_suite(suite, "server", "--url", url, "--scenario", scenario, *chosen)
    return output if code else ""


async def check_client(suite: str, scenario: str, version: str = "") -> None:
    """Run a client scenario against the installed program; fails unless every check passes."""
    chosen = ("--spec-version", version) if version else ()
    code, output = await run_suite(
        suite,
        "client",
        *("--command", CLIENT, "--scenario", scenario, "--timeout", "60000", *chosen),
    )
    assert code == 0, output
