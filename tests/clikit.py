"""The installed program as a child process, against a scripted model server."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trimtab.testing import ModelServer, Script

TRIMTAB = os.path.join(os.path.dirname(sys.executable), "trimtab")


class Outcome:
    """What a finished process left behind."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def notes(self) -> str:
        return self.err.decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as lines of JSON; fails if it is anything else."""
        assert self.out.endswith(b"\n"), self.out[-200:]
        return [json.loads(line) for line in self.out[:-1].split(b"\n")]

    @property
    def result(self) -> dict[str, Any]:
        """The one result, which must be the last line and agree with the exit code."""
        assert self.types().count("result") == 1, self.notes
        last = self.lines[-1]
        assert last["type"] == "result"
        assert last["exitCode"] == self.code
        return last

    def types(self) -> list[str]:
        return [line["type"] for line in self.lines]

    def of(self, wire_name: str) -> list[Any]:
        return [line["data"] for line in self.lines if line["type"] == wire_name]


class Cli:
    """Starts `trimtab` in a folder of its own, with a home of its own and nothing else set."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.cwd = folder / "project"
        self.home.mkdir(parents=True)
        self.cwd.mkdir()
        self.outcomes: list[Outcome] = []
        self.env: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "COPILOT_HOME": str(self.home),
            "TRIMTAB_RETRY_DELAY_SECONDS": "0.01",
            "TRIMTAB_LOCAL_SERVERS": "off",
            "LANG": "C.UTF-8",
        }

    def use(self, server: ModelServer) -> "Cli":
        self.env |= {
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_PROVIDER_API_KEY": "test-key-0123456789",
            "COPILOT_MODEL": "scripted",
        }
        return self

    async def start(self, *args: str, **options: Any) -> asyncio.subprocess.Process:
        env: Mapping[str, str] = {**self.env, **options.pop("env", {})}
        return await asyncio.create_subprocess_exec(
            options.pop("program", TRIMTAB),
            *args,
            cwd=options.pop("cwd", self.cwd),
            env=env,
            stdin=options.pop("stdin_fd", asyncio.subprocess.DEVNULL),
            stdout=options.pop("stdout", asyncio.subprocess.PIPE),
            stderr=options.pop("stderr", asyncio.subprocess.PIPE),
            limit=1 << 26,
            **options,
        )

    async def run(self, *args: str, stdin: bytes | None = None, **options: Any) -> Outcome:
        """Run to the end, at most 60 seconds."""
        if stdin is not None:
            options["stdin_fd"] = asyncio.subprocess.PIPE
        process = await self.start(*args, **options)
        try:
            async with asyncio.timeout(60):
                out, err = await process.communicate(stdin)
        except BaseException:
            process.kill()
            raise
        assert process.returncode is not None
        self.outcomes.append(Outcome(process.returncode, out or b"", err))
        return self.outcomes[-1]

    async def ask(self, prompt: str, *args: str, **options: Any) -> Outcome:
        """One prompt, everything allowed, events as JSON."""
        return await self.run(
            "-p", prompt, "--output-format", "json", "--allow-all", *args, **options
        )

    def logs(self) -> list[Path]:
        return sorted(self.home.glob("session-state/*/events.jsonl"))


@asynccontextmanager
async def serving(replies: Any, **options: Any) -> Any:
    """A scripted model server."""
    async with ModelServer(Script.of(replies), **options) as server:
        yield server


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command, "description": "test"}}
