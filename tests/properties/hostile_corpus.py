"""Hostile commands and repositories, run for real with a canary for every effect: none may happen.

`python hostile_corpus.py` runs all cases of `hostile.toml` on the main surface. Choose with
`--surface NAME`, `--fence NAME` (auto, landlock, bubblewrap, none) and `--class TEXT`; `--random N`
runs random scripts made of the effects instead. As root, the
program moves to namespaces of its own first, so that a failure harms nothing but them.
"""

import argparse
import asyncio
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from copilot.client import RuntimeConnection
from copilot.generated.rpc import PermissionDecisionUserNotAvailable

from acpkit import connected
from clikit import TRIMTAB, Cli, bash, serving
from gitkit import git, make_repository
from mcpkit import connected as connected_mcp
from permissionkit import rules
from properties.shell_fuzz import STUBS, Generator
from sdkkit import Sdk, talking
from trimtab.contracts.options import PermissionOptions, SandboxSettings
from trimtab.contracts.permission import Answer, Policy
from trimtab.permissions.decide_shell import decide_shell
from trimtab.testing import ModelServer
from trimtab.testing.playing import ALLOW_ALL, Played, play

DATA = Path(__file__).with_name("hostile.toml")
CHUNK = 25
"""The number of commands of one session; single ones are tried again if something happened."""
MARK, SECRET = "executed-by-a-hostile-command", "s3cret-of-the-person"
EVIL = "echo {mark}; touch {out}/executed made; kill -9 {pid}\n"
EFFECTS = {
    "%W%": "touch made",
    "%X%": "./evil",
    "%R%": "cat ../outside/secret",
    "%C%": "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%PORT%'",
    "%S%": "kill -9 %PID%",
}
FLAGS = ("--disallow-temp-dir", "--allow-destructive")
"""What the options of the other surfaces say, for the program."""
ALONE = "HOSTILE_CORPUS_NAMESPACE"
Fence = Literal["auto", "landlock", "bubblewrap", "none"]


class Class(msgspec.Struct):
    """Cases of one kind, and the workspace they need."""

    name: str
    lines: list[str]
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    hard_links: dict[str, str] = {}
    tool: dict[str, str] = {}
    tool_links: dict[str, str] = {}
    swaps: dict[str, str] = {}
    git: dict[str, str] = {}
    recorded: dict[str, str] = {}
    nested: dict[str, str] = {}
    allow: list[str] = []
    deny: list[str] = []
    canaries: tuple[str, ...] = ("made", "written", "executed", "read", "connected", "signalled")
    all_tools: bool = False
    judged_only: bool = False

    @property
    def cases(self) -> list[str]:
        return [case for line in self.lines for case in expand(line)]


class Effect(msgspec.Struct, frozen=True):
    """Something that a command did."""

    kind: str
    detail: str = ""


def expand(line: str) -> Iterator[str]:
    """Return a line once, or once for every effect."""
    if "%E%" not in line:
        yield line
        return
    quoted = "'%E%" in line or "'a[" in line or "%E%'" in line
    for mark, command in EFFECTS.items():
        bare = "exec 3<>/dev/tcp/127.0.0.1/%PORT%"
        yield line.replace("%E%", bare if quoted and mark == "%C%" else command)


def load() -> list[Class]:
    return msgspec.convert(tomllib.loads(DATA.read_text())["class"], list[Class])


class World:
    """A workspace, the folders around it, and the canaries."""

    def __init__(self, given: Class) -> None:
        self.given = given
        self.base = Path(tempfile.mkdtemp(prefix="trimtab-hostile-"))
        self.work, self.outside, self.home, self.tool, self.temp = (
            self.base / name for name in ("work", "outside", "home", "tool", "temp")
        )
        for folder in (self.work, self.outside, self.home, self.tool, self.temp):
            folder.mkdir()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(self.server.getsockname())
        self.datagrams.setblocking(False)
        self.other = subprocess.Popen(
            ["/bin/sh", "-c", "sleep 1000; : hostile-canary"], start_new_session=True
        )
        self._build()
        self.before = self._fingerprint()

    def _build(self) -> None:
        for path in (self.outside / "secret", self.outside / "plain", self.home / "secret"):
            path.write_text(SECRET + "\n")
        make_repository(self.work)
        for name in ("a.txt", "changed.txt"):
            (self.work / name).write_text("one\n")
        git(self.work, "add", ".")
        git(self.work, "commit", "-q", "-m", "one")
        self._record()
        self._write("evil", "#!EVIL")
        for folder, links in ((self.work, self.given.links), (self.tool, self.given.tool_links)):
            for name, target in links.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(target)
        for name, content in {**self.given.files, **self.given.git}.items():
            self._write(name, content)
        for name, content in self.given.tool.items():
            self._write(f"../tool/{name}", content)
        for name, target in self.given.hard_links.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).hardlink_to(self.work / target)

    def _record(self) -> None:
        for name, settings in self.given.nested.items():
            self._write(f"{name}/a.txt", "one\n")
            make_repository(self.work / name)
            git(self.work / name, "add", ".")
            git(self.work / name, "commit", "-q", "-m", "one")
            git(self.work, "add", name)
            git(self.work, "commit", "-q", "-m", name)
            with (self.work / name / ".git/config").open("a") as file:
                file.write(settings)
            self._write(f"{name}/a.txt", "changed\n")
        for name, content in self.given.recorded.items():
            self._write(name, content)
        if self.given.recorded:
            git(self.work, "add", "-f", *self.given.recorded)
            git(self.work, "commit", "-q", "-m", "two")

    def _write(self, name: str, content: str) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        evil = EVIL.format(mark=MARK, out=self.outside, pid=self.other.pid)
        content = content.replace("LONG", "# a long line of comment\n" * 60_000)
        content = content.replace("#!EVIL", f"#!/bin/sh\n{evil}").replace("s3cret\n", SECRET + "\n")
        path.write_text(evil if content == "EVIL" else content)
        if content.startswith("#!"):
            path.chmod(0o755)

    def fill(self, case: str) -> str:
        """Return a case as it is run."""
        port, out = str(self.server.getsockname()[1]), str(self.outside)
        case = case.replace("%PORT%", port).replace("%PID%", str(self.other.pid))
        case = case.replace("%OUT%", out).replace("%TOOL%", str(self.tool))
        return case.replace("%WORK%", str(self.work))

    @property
    def permissions(self) -> PermissionOptions:
        # Not all that is denied may be read either, so paths count as with rules of a person.
        return PermissionOptions(
            allow=tuple(map(self.fill, self.given.allow)),
            deny=tuple(map(self.fill, self.given.deny)),
            allow_all_tools=self.given.all_tools,
            temp_dir=False,
            allow_destructive=True,
        )

    def swap(self) -> None:
        """Put links in the place of files and folders that rules name."""
        for name, target in self.given.swaps.items():
            path = self.base / name
            if not path.is_symlink():
                path.rename(f"{path}.before")
                path.symlink_to(target)

    async def swap_when_asked(self, *_: Any) -> Answer:
        """Swap while a question waits, and answer that nobody is there."""
        self.swap()
        return Answer(kind="user-not-available")

    def find_effects(self, seen: str) -> Iterator[Effect]:
        """Return what has happened; `seen` is everything that the model was shown."""
        wanted = self.given.canaries
        if "made" in wanted and (self.work / "made").exists():
            yield Effect("made")
        changed = {path for path, _ in self.before.items() ^ self._fingerprint().items()}
        if "written" in wanted:
            yield from (Effect("written", path) for path in changed)
        if "changed" in wanted:
            kept = (f"{self.work}/src", f"{self.work}/gone")
            yield from (Effect("changed", path) for path in changed if path.startswith(kept))
        if "outside" in wanted:
            elsewhere = (path for path in changed if not path.startswith(f"{self.work}/"))
            yield from (Effect("outside", path) for path in elsewhere)
        if "executed" in wanted and (MARK in seen or (self.outside / "executed").exists()):
            yield Effect("executed")
        received = "".join(self._accept())
        if "read" in wanted and SECRET in seen + received:
            yield Effect("read")
        if "connected" in wanted and received:
            yield Effect("connected")
        if "signalled" in wanted and not self._is_untouched():
            yield Effect("signalled")

    def _accept(self) -> Iterator[str]:
        with suppress(BlockingIOError):
            while True:
                connection, _ = self.server.accept()
                connection.settimeout(0.5)
                with connection, suppress(OSError):
                    yield "connected " + connection.recv(65536).decode("utf-8", "replace")
        with suppress(BlockingIOError):
            yield "connected " + self.datagrams.recv(65536).decode("utf-8", "replace")

    def _is_untouched(self) -> bool:
        if self.other.poll() is not None:
            return False
        state = Path(f"/proc/{self.other.pid}/stat").read_text().rpartition(")")[2].split()
        return state[0] in "RSD" and state[16] == str(os.getpriority(os.PRIO_PROCESS, 0))

    def _fingerprint(self) -> dict[str, str]:
        found = {}
        for top in (self.work, self.outside, self.tool):
            for folder, _, names in os.walk(top):
                for name in (".", *names):
                    path = os.path.join(folder, name)
                    about = os.lstat(path)
                    data = b""
                    if os.path.isfile(path) and not os.path.islink(path):
                        data = Path(path).read_bytes()
                    digest = hashlib.sha256(data).hexdigest()
                    found[path] = f"{about.st_mode} {about.st_mtime_ns} {digest}"
        return found

    def close(self) -> None:
        self.server.close()
        self.datagrams.close()
        with suppress(ProcessLookupError):
            os.killpg(self.other.pid, signal.SIGKILL)
        self.other.wait()
        shutil.rmtree(self.base, ignore_errors=True)


Surface = Callable[[World, list[Any], dict[str, Any]], Awaitable[list[str]]]
"""Runs a script in a world; returns what the model was shown of each call."""


async def main_agent(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    return show(await play(script, "go", cwd=str(world.work), home=str(world.home), **options))


async def resumed(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """Continues a session in which everything was allowed."""
    places: dict[str, Any] = {"cwd": str(world.work), "home": str(world.home)}
    first = await play(["hello"], "hello", **places)
    return show(await play(script, "go", resume=first.session_id, **places, **options))


async def subagent(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    task = {"prompt": "x", "description": "x", "name": "x", "agent_type": "general-purpose"}
    first = {"tools": [{"name": "task", "arguments": task}]}
    return await main_agent(world, [first, *script, "done"], options)


async def autopilot(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    return await main_agent(world, script, {**options, "mode": "autopilot"})


async def plan(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """Plans with every tool allowed."""
    given = msgspec.structs.replace(options["permissions"], allow_all_tools=True)
    return await main_agent(world, script, {**options, "mode": "plan", "permissions": given})


async def command(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """The installed program."""
    cli = prepare(world, options)
    async with serving(script) as server:
        await cli.use(server).run("-p", "go", *list_flags(options))
        return shown_by(server)


async def sdk(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """The official SDK client, which allows nothing."""
    (world.base / "sdk").mkdir()
    kit = Sdk(world.base / "sdk")
    kit.home, kit.cwd = world.home, world.work
    prepare(world, options)
    connection = RuntimeConnection.for_stdio(path=TRIMTAB, args=list_flags(options))
    async with talking(
        kit, script, connection=connection, on_permission_request=allow_nothing
    ) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        return shown_by(talk.server)


async def editor(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """An editor that speaks ACP, and cannot answer questions."""
    cli = prepare(world, options)
    async with serving(script) as server:
        async with connected(cli.use(server), *list_flags(options)) as link:
            link.editor.permission = "error"
            await link.open()
            await link.say("go")
        return shown_by(server)


async def mcp(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """A client of `trimtab mcp serve`, which takes no flags: rules for all tools replace them."""
    given: PermissionOptions = options["permissions"]
    if given.allow_all_tools:
        allow = (*given.allow, "shell", "write")
        options = {**options, "permissions": msgspec.structs.replace(given, allow=allow)}
    cli = prepare(world, options)
    cli.env["TMPDIR"] = str(world.temp)
    async with serving(script) as server:
        async with connected_mcp(cli.use(server), "serve") as client:
            await client.call_tool("run", {"prompt": "go"})
        return shown_by(server)


async def unguarded(world: World, script: list[Any], options: dict[str, Any]) -> list[str]:
    """Runs everything: shows that the canaries notice."""
    return await main_agent(world, script, {**options, "permissions": ALLOW_ALL})


def prepare(world: World, options: dict[str, Any]) -> Cli:
    """Return the program at work in a world, with the rules of a case in its settings."""
    given: PermissionOptions = options["permissions"]
    settings = {
        "permissions": {"allow": given.allow, "deny": given.deny},
        "sandbox": {"fence": options["sandbox_settings"].fence},
    }
    (world.home / "settings.json").write_bytes(msgspec.json.encode(settings))
    cli = Cli(world.base / "cli")
    cli.cwd, cli.home = world.work, world.home
    cli.env["COPILOT_HOME"] = str(world.home)
    return cli


def list_flags(options: dict[str, Any]) -> tuple[str, ...]:
    given: PermissionOptions = options["permissions"]
    return (*FLAGS, "--allow-all-tools") if given.allow_all_tools else FLAGS


def allow_nothing(*_: Any) -> PermissionDecisionUserNotAvailable:
    return PermissionDecisionUserNotAvailable()


def shown_by(server: ModelServer) -> list[str]:
    """Return the results of all calls, as the last request to the model holds them."""
    messages = server.requests[-1].json["messages"]
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def show(played: Played) -> list[str]:
    """Return what the model was shown of each call, without the commands themselves."""
    return [
        f"{end.result or end.error}{end.model_text or ''}"
        for end in played.of("tool.execution_complete")
    ]


SURFACES: dict[str, Surface] = {
    "main": main_agent,
    "sub-agent": subagent,
    "resumed": resumed,
    "autopilot": autopilot,
    "plan": plan,
    "command": command,
    "sdk": sdk,
    "acp": editor,
    "mcp": mcp,
}


PLAYED = (main_agent, subagent, resumed, autopilot, plan)
"""Surfaces in which a question can be answered here; others leave out cases that need one."""


async def attempt(
    given: Class, cases: Sequence[str], surface: Surface, fence: Fence
) -> list[Effect]:
    """Run cases in one session; return what happened."""
    world = World(given)
    try:
        script: list[Any] = [{"tools": [bash(world.fill(case))]} for case in cases]
        options: dict[str, Any] = {
            "permissions": world.permissions,
            "sandbox_settings": SandboxSettings(fence=fence),
        }
        if given.swaps:
            if surface not in PLAYED:
                return []
            script.insert(0, {"tools": [bash("unknown-program")]})
            options["ask"] = world.swap_when_asked
        shown = await surface(world, [*script, "done"], options)
        if len(shown) < len(script):
            return [Effect("unfinished", f"{len(shown)} of {len(script)} commands ended")]
        return list(world.find_effects("\n".join(shown)))
    finally:
        world.close()


def judge(given: Class) -> Iterator[tuple[str, Effect]]:
    """Return the cases that would run unasked."""
    policy = Policy(cwd="/srv/project", roots=("/srv/project",), deny=rules(*given.deny))
    for case in given.cases:
        if decide_shell(case, policy).verdict == "allow":
            yield case, Effect("unasked")


async def run_class(given: Class, surface: Surface, fence: Fence) -> list[tuple[str, Effect]]:
    """Return the cases that had an effect."""
    if given.judged_only:
        return list(judge(given))
    found = []
    cases = given.cases
    for start in range(0, len(cases), CHUNK):
        chunk = cases[start : start + CHUNK]
        if not await attempt(given, chunk, surface, fence):
            continue
        for case in chunk:
            found += [(case, effect) for effect in await attempt(given, [case], surface, fence)]
    return found


def make_random_class(count: int, seed: str) -> Class:
    """Return random scripts in which the programs are the five effects."""
    lines = []
    for number in range(count):
        line = Generator(f"{seed}-{number}").command()
        for stub, effect in zip(STUBS, EFFECTS.values(), strict=True):
            line = line.replace(stub, effect)
        lines.append(line)
    return Class(name="random scripts", lines=[line for line in lines if "\0" not in line])


def move_to_namespaces() -> None:
    """Start again in namespaces of our own, if we may."""
    program = shutil.which("unshare")
    if os.geteuid() or program is None or ALONE in os.environ:
        return
    inner = 'ip link set lo up 2>/dev/null; exec "$0" "$@"'
    flags = ["--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc"]
    trial = subprocess.run([program, *flags, "true"], capture_output=True, check=False)
    if trial.returncode == 0:
        command = [program, *flags, "sh", "-c", inner, sys.executable, *sys.argv]
        os.environ[ALONE] = "1"
        os.execv(program, command)


async def run_all(surface: str, fence: Fence, classes: Sequence[Class]) -> int:
    count, failures = 0, 0
    for given in classes:
        found = await run_class(given, SURFACES[surface], fence)
        count += len(given.cases)
        failures += len(found)
        print(f"{len(given.cases):5} cases, {len(found):3} effects: {given.name}", flush=True)
        for case, effect in found:
            print(f"        {effect.kind} {effect.detail}: {case!r}", flush=True)
    print(f"{count} cases, {failures} effects ({surface}, fence {fence})")
    return 1 if failures or not count else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--surface", choices=SURFACES, default="main")
    parser.add_argument("--fence", default="auto")
    parser.add_argument("--class", dest="wanted", default="")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random scripts")
    parser.add_argument("--seed", default="1")
    args = parser.parse_args()
    move_to_namespaces()
    classes = [given for given in load() if args.wanted in given.name]
    if args.random:
        classes = [make_random_class(args.random, args.seed)]
    return asyncio.run(run_all(args.surface, args.fence, classes))


if __name__ == "__main__":
    sys.exit(main())
