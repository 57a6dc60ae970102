"""Tools in tests: a workspace in a temporary directory, and calls as a model makes them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from trimtab.contracts.tool import Access, Assignment, Tool, ToolResult
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import builtin_tools
from trimtab.workspace.local import LocalWorkspace


class BenchAgents:
    """Agents that say what they were asked."""

    async def delegate(self, assignment: Assignment) -> ToolResult:
        return ToolResult(text=f"{assignment.agent_type} did: {assignment.prompt}")

    async def read(self, agent_id: str, *, wait: float, since_turn: int) -> ToolResult:
        return ToolResult(text=f"read {agent_id} {wait} {since_turn}")

    def list(self, scope: str, *, include_completed: bool) -> ToolResult:
        return ToolResult(text=f"list {scope} {include_completed}")

    def write(self, agent_ids: Sequence[str], scope: str | None, text: str) -> ToolResult:
        return ToolResult(text=f"write {list(agent_ids)} {scope} {text}")

    async def stop(self, agent_id: str) -> ToolResult:
        return ToolResult(text=f"stop {agent_id}")


class Bench:
    """Tools at work in one directory. `session_id` marks every process they start."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.session_id = str(uuid4())
        self.call_id = "call_1"
        self.output_limit = 20 * 1024
        self.hard_limit = 256 * 1024
        self.command_env: dict[str, str] = {}
        self.root = root / "work"
        self.root.mkdir()
        self.files = str(root / "files")
        self.database = str(root / "session.db")
        self.client_database = None
        self.shown: list[str] = []
        self.workspace = LocalWorkspace(
            root=str(self.root), files=self.files, session_id=self.session_id, **options
        )
        self.tools: dict[str, Tool] = builtin_tools()

    def progress(self, text: str) -> None:
        self.shown.append(text)

    @property
    def printed(self) -> str:
        return "".join(self.shown)

    @property
    def agents(self) -> "BenchAgents":
        return BenchAgents()

    async def call(self, name: str, **args: Any) -> ToolResult:
        """Read the arguments of a call, ask for its access and run it, as the loop does."""
        tool = self.tools[name]
        read = read_arguments(tool.spec, msgspec.json.encode(args).decode())
        if isinstance(read, ToolResult):
            return read
        tool.access(read, self)
        return await tool.run(read, self)

    async def text(self, name: str, **args: Any) -> str:
        return (await self.call(name, **args)).text

    async def bash(self, command: str, **args: Any) -> str:
        return await self.text("bash", command=command, description="test", **args)

    def access(self, name: str, **args: Any) -> Access:
        (access,) = self.tools[name].access(args, self)
        return access

    def path(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, data: bytes | str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path


@asynccontextmanager
async def open_bench(root: Path, **options: Any) -> AsyncIterator[Bench]:
    bench = Bench(root, **options)
    try:
        yield bench
    finally:
        await bench.workspace.aclose()


def saved_text(result: str) -> str:
    """The contents of the file that a result names."""
    return Path(result.partition("Saved to: ")[2].partition("\n")[0]).read_text()


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for what only the operating system knows, which tells nobody."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    """Return True if a process is alive; one that has ended may still wait to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # FileNotFoundError, or ProcessLookupError if it ends between open and read
        return False
    return state != "Z"


def processes_with(marker: str) -> list[str]:
    """Command lines of the living processes whose environment or command line has the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in environ + command and int(pid) != os.getpid():
            found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found
