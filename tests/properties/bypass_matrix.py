"""Ways around a rule, on every surface there is, against every kind of rule: nothing may change.

`python bypass_matrix.py 0` tries all of it and says how many effects there were. Surfaces are
sessions in this process, the real command, and the real command behind the official SDK.
"""

import asyncio
import hashlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from clikit import Cli, serving
from mcpkit import entry
from sdkkit import Sdk, make_tool, talking
from trimtab.contracts.options import CustomizationOptions, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.testing.playing import ALLOW_ALL, Played, play

SHELL = {
    "plain": "touch made",
    "compound": "ls && touch made; true",
    "substitution": "echo $(touch made) `touch made2`",
    "process substitution": "cat <(touch made) > /dev/null",
    "redirection": "echo x > made",
    "append": "echo x >> kept.txt",
    "clobber": "echo x >| kept.txt",
    "read-write": ": <> made",
    "here document": "cat > made <<END\nx\nEND",
    "here string": "tee made <<< x",
    "hidden word": "t''ouch made",
    "escaped word": "\\touch made",
    "variable word": "x=touch; $x made",
    "ansi word": "$'\\x74ouch' made",
    "continued word": "to\\\nuch made",
    "path": "/usr/bin/touch made; /bin/../bin/touch made2",
    "wrapper": "env nice -n 1 timeout 5 touch made",
    "xargs": "echo made | xargs touch",
    "find": "find . -name kept.txt -exec touch made ;",
    "find delete": "find . -name kept.txt -delete",
    "eval": 'eval "touch made"',
    "shell": "bash -c 'touch made'; sh -c 'touch made2'",
    "stdin script": "echo 'touch made' | bash",
    "function": "ls() { touch made; }; ls",
    "alias": "shopt -s expand_aliases; alias ls='touch made'\nls",
    "trap": "trap 'touch made' EXIT",
    "background": "touch made & wait",
    "python": 'python3 -c \'open("made", "w")\'',
    "perl": "perl -e 'open F, \">made\"'",
    "awk": "awk 'BEGIN { system(\"touch made\") }'",
    "sed": "sed -i s/kept/lost/ kept.txt",
    "sed e": "echo x | sed 'e touch made'",
    "sort output": "sort -o made kept.txt",
    "tar": "tar cf made kept.txt",
    "git hook": "git -c alias.x='!touch made' x",
    "git alias": "git -c core.pager='touch made' -p log",
    "editor variable": "PAGER='touch made' git -p log",
    "move": "mv kept.txt made",
    "remove": "rm -f kept.txt",
    "link": "ln -s /etc/passwd made; ln kept.txt made2",
    "truncate": "truncate -s 0 kept.txt",
    "carriage return": "ls\r; touch made",
}
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create", {"path": "made", "file_text": "x"}),
    "create above": ("create", {"path": "sub/../made", "file_text": "x"}),
    "create by link": ("create", {"path": "here/made", "file_text": "x"}),
    "edit": ("edit", {"path": "kept.txt", "old_str": "kept", "new_str": "lost"}),
    "edit by link": ("edit", {"path": "here/kept.txt", "old_str": "kept", "new_str": "lost"}),
    "a person's own tool": ("maker", {"path": "made"}),
}
OWN_TOOL = """import trimtab

@trimtab.tool
def maker(path: str) -> str:
    \'\'\'Makes a file.\'\'\'
    open({folder!r} + path, "w").close()
    return "made"
"""
TASK = {"description": "a part", "prompt": "Do it."}
Choices = dict[str, Any]
Ends = list[tuple[bool, str]]
"""Of every call whether it went through, and what the model was told."""
DENIED = ("shell", "write", "maker", "outsider", "small")
WORKING = "bash|create|edit|maker|outsider|small-.*"
"""Tools that a hook is asked about: those that do something themselves."""
Guard = Callable[[Path, Path], dict[str, Any]]


def plan_mode(home: Path, cwd: Path) -> dict[str, Any]:
    return {"mode": "plan"}


def deny_rule(home: Path, cwd: Path) -> dict[str, Any]:
    return {
        "permissions": PermissionOptions(
            allow_all_tools=True,
            allow_all_paths=True,
            allow_all_urls=True,
            allow_destructive=True,
            deny=DENIED,
        )
    }


def hook_deny(home: Path, cwd: Path) -> dict[str, Any]:
    answer = {"permissionDecision": "deny", "permissionDecisionReason": "the hook says no"}
    hook = {
        "type": "command",
        "matcher": WORKING,
        "bash": f"cat > /dev/null; echo '{json.dumps(answer)}'",
    }
    folder = home / "hooks"
    folder.mkdir(exist_ok=True)
    hooks = {"version": 1, "hooks": {"preToolUse": [hook]}}
    (folder / "hooks.json").write_text(json.dumps(hooks))
    return {}


def hook_change(home: Path, cwd: Path) -> dict[str, Any]:
    """A hook that turns something harmless into what a rule denies."""
    changed = {"command": "touch made", "description": "x", "path": "made", "file_text": "x"}
    hook = {
        "type": "command",
        "matcher": WORKING,
        "bash": f"cat > /dev/null; echo '{json.dumps({'modifiedArgs': changed})}'",
    }
    folder = home / "hooks"
    folder.mkdir(exist_ok=True)
    hooks = {"version": 1, "hooks": {"preToolUse": [hook]}}
    (folder / "hooks.json").write_text(json.dumps(hooks))
    return deny_rule(home, cwd)


def read_only_agent(home: Path, cwd: Path) -> dict[str, Any]:
    folder = home / "agents"
    folder.mkdir(exist_ok=True)
    text = "---\nname: reader\ndescription: reads\ntools: [view, grep, glob]\n---\nRead only.\n"
    (folder / "reader.agent.md").write_text(text)
    return {"customize": CustomizationOptions(agent="reader")}


def read_only_main(home: Path, cwd: Path) -> dict[str, Any]:
    """One that has a shell, and is kept from changing anything with it."""
    return {"customize": CustomizationOptions(agent="explore")}


def explore(home: Path, cwd: Path) -> dict[str, Any]:
    return {"below": "explore"}


def code_review(home: Path, cwd: Path) -> dict[str, Any]:
    return {"below": "code-review"}


GUARDS: dict[str, Guard] = {
    "plan mode": plan_mode,
    "deny rule": deny_rule,
    "hook deny": hook_deny,
    "hook change": hook_change,
    "read-only agent": read_only_agent,
    "read-only main agent": read_only_main,
    "explore": explore,
    "code review": code_review,
}


async def approve(request_id: str, request: Any) -> Answer:
    """A client that agrees to everything it is asked."""
    return Answer(kind="approve-for-session")


def ends_of(played: Played, agent: str | None = None) -> Ends:
    """How the calls of one agent ended."""
    done = [event for event in played.events if event.type == "tool.execution_complete"]
    ends: list[Any] = [event.data for event in done if event.agent_id == agent]
    return [(end.success, (end.error or {}).get("message", "")) for end in ends]


async def headless(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    return ends_of(await play(script, "go", **places, **choices))


async def client(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    return ends_of(await play(script, "go", ask=approve, **places, **choices))


async def resumed(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """First with everything allowed; none of that is left afterwards."""
    first = await play(["hello"], "hello", ask=approve, **places)
    return ends_of(await play(script, "go", resume=first.session_id, **places, **choices))


async def autopilot(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    return ends_of(await play(script, "go", **places, **{"mode": "autopilot", **choices}))


async def subagent(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    return await delegate(script, places, choices, ())


async def agent_below(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """An agent that another agent started."""
    return await delegate(script, places, choices, ("general-purpose",))


async def delegate(
    script: list[Any], places: dict[str, Any], choices: Choices, between: tuple[str, ...]
) -> Ends:
    """What the last agent of a chain was told, which its model must have read."""
    agents = (*between, choices.pop("below", "general-purpose"))
    chain = [
        {"tools": [{"name": "task", "arguments": {**TASK, "agent_type": agent}}]}
        for agent in agents
    ]
    played = await play([*chain, *script], "go", ask=approve, **places, **choices)
    *_, last = [event.agent_id for event in played.events if event.type == "subagent.started"]
    ends = ends_of(played, last)
    read = next(
        "\n".join(getattr(message, "text", "") for message in request.messages)
        for request in reversed(played.requests)
        if len(request.messages) > len(ends)
    )
    unread = [message for _, message in ends if message not in read]
    return ends if not unread else [*ends, (True, f"not read by the model: {unread[0]}")]


async def command(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """The installed program, once."""
    return await run_command(script, places, to_flags(choices))


async def resumed_command(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """The installed program, continuing what was allowed everything before."""
    return await run_command([{"text": "hello"}, *script], places, to_flags(choices), first=True)


async def run_command(
    script: list[Any], places: dict[str, Any], flags: list[str], *, first: bool = False
) -> Ends:
    cli = Cli(Path(tempfile.mkdtemp(prefix="trimtab-bypass-")))
    cli.cwd = Path(places["cwd"])
    cli.env["COPILOT_HOME"] = places["home"]
    async with serving(script) as server:
        cli.use(server)
        if first:
            await cli.ask("hello", "--yolo")
        ran = await cli.ask("go", *flags, *(["--continue"] if first else []))
    ends = ran.of("tool.execution_complete")
    return [(end["success"], end.get("error", {}).get("message", "")) for end in ends]


def to_flags(choices: Choices) -> list[str]:
    flags = [word for rule in choices["permissions"].deny for word in ("--deny-tool", rule)]
    flags += ["--allow-destructive"] if choices["permissions"].allow_destructive else []
    flags += ["--plan"] if choices.get("mode") == "plan" else []
    custom = choices.get("customize")
    return flags + (["--agent", custom.agent] if custom else [])


async def sdk(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """The official client, which approves everything and brings a tool of its own."""
    kit = Sdk(Path(tempfile.mkdtemp(prefix="trimtab-bypass-")))
    kit.home, kit.cwd = Path(places["home"]), Path(places["cwd"])
    if choices["permissions"].deny:
        rules = {"permissions": {"deny": choices["permissions"].deny}}
        (kit.home / "settings.json").write_text(json.dumps(rules))
    config: Choices = {}
    if custom := choices.get("customize"):
        config["agent"] = custom.agent
    tool = make_tool("outsider", lambda key: str((kit.cwd / key).write_text("x")))
    outside = [{"tools": [{"name": "outsider", "arguments": {"key": "made"}}]}]
    async with talking(kit, [*outside, *script], tools=[tool], **config) as talk:
        mode = {"agent_mode": choices["mode"]} if "mode" in choices else {}
        await talk.session.send("go", **mode)
        await talk.heard.until("session.idle")
        ends = talk.heard.of("tool.execution_complete")
    return [(end.success, end.error.message if end.error else "") for end in ends]


async def mcp(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """Through a server that says it only reads, with a person who agrees to everything."""
    played = await play(to_server(script), "go", ask=approve, **places, **with_server(choices))
    return ends_of(played)


async def mcp_below(script: list[Any], places: dict[str, Any], choices: Choices) -> Ends:
    """The same server, called by another agent."""
    return await delegate(to_server(script), places, with_server(choices), ())


def with_server(choices: Choices) -> Choices:
    servers = {"mcpServers": {"small": entry("hands", slowConnectionThresholdMs=30_000)}}
    custom = choices.get("customize") or CustomizationOptions()
    custom = msgspec.structs.replace(custom, mcp_config=(json.dumps(servers),))
    return {**choices, "customize": custom}


def to_server(script: list[Any]) -> list[Any]:
    """The same ways, through tools of the server that would do what the built-in ones do."""
    return [
        one if isinstance(one, str) else {"tools": list(map(served, one["tools"]))}
        for one in script
    ]


def served(call: dict[str, Any]) -> dict[str, Any]:
    given = call["arguments"]
    if call["name"] == "bash":
        return {"name": "small-run", "arguments": {"command": given["command"]}}
    name = "small-peek" if call["name"] == "maker" else "small-make"
    return {"name": name, "arguments": {"path": given["path"], "text": "x"}}


SURFACES: dict[str, Callable[..., Awaitable[Ends]]] = {
    "headless": headless,
    "client": client,
    "resumed": resumed,
    "autopilot": autopilot,
    "command": command,
    "resumed command": resumed_command,
    "sdk": sdk,
    "sub-agent": subagent,
    "agent below an agent": agent_below,
    "mcp": mcp,
    "mcp below an agent": mcp_below,
}
BELOW = ("sub-agent", "agent below an agent", "mcp below an agent")
EXTRA = {"sdk": 1}
"""Calls that only one surface can try."""


def digest(folder: Path) -> str:
    """One value for all names, kinds and contents below a folder."""
    seen = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        seen.update(f"{path.relative_to(folder)} {path.lstat().st_mode} ".encode())
        if path.is_symlink():
            seen.update(os.readlink(path).encode())
        elif path.is_file():
            seen.update(path.read_bytes())
    return seen.hexdigest()


def calls(every: int) -> list[dict[str, Any]]:
    """The ways around, every n-th of them."""
    shell = [
        {"name": "bash", "arguments": {"command": command, "description": name}}
        for name, command in SHELL.items()
    ]
    tools = [{"name": name, "arguments": arguments} for name, arguments in FILES.values()]
    return [*shell[::every], *tools]


async def attempt(folder: Path, guard: str, surface: str, every: int = 1) -> list[str]:
    """Try the ways around one rule on one surface; what went wrong, as sentences."""
    home, cwd = folder / "home", folder / "work"
    for place in (home, cwd / "sub"):
        place.mkdir(parents=True)
    (cwd / "kept.txt").write_text("kept\n")
    (cwd / "here").symlink_to(".")
    (home / "tools").mkdir()
    (home / "tools" / "maker.py").write_text(OWN_TOOL.format(folder=f"{cwd}/"))
    tried = calls(every)
    script = [*({"tools": [call]} for call in tried), *["done"] * 12]
    choices = {"permissions": ALLOW_ALL, **GUARDS[guard](home, cwd)}
    before = digest(cwd)
    places: dict[str, Any] = {"cwd": str(cwd), "home": str(home)}
    ends = await SURFACES[surface](script, places, choices)
    wrong = [] if digest(cwd) == before else [f"{guard} on {surface}: the folder changed"]
    count = len(tried) + EXTRA.get(surface, 0)
    if len(ends) != count:
        wrong.append(f"{guard} on {surface}: {len(ends)} of {count} calls were answered")
    for number, (success, message) in enumerate(ends):
        if success or not message:
            wrong.append(f"{guard} on {surface}: call {number} was not refused: {message}")
    return wrong


def pairs() -> list[tuple[str, str]]:
    """Every rule on every surface, but for those that exclude each other."""
    return [
        (guard, surface)
        for guard, surface in itertools.product(GUARDS, SURFACES)
        if (guard, surface) != ("plan mode", "autopilot")
        if surface in BELOW or guard not in ("explore", "code review")
        if surface not in BELOW or guard not in ("read-only agent", "read-only main agent")
    ]


async def main() -> int:
    wrong: list[str] = []
    for guard, surface in pairs():
        folder = Path(tempfile.mkdtemp(prefix="trimtab-bypass-"))
        wrong += await attempt(folder, guard, surface)
    print("\n".join(wrong[:20]))
    count = sum(len(calls(1)) + EXTRA.get(surface, 0) for _, surface in pairs())
    print(f"{len(wrong)} effects of {count} attempts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
