"""Every command on every page is run, in a project that has what the pages speak of."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clikit import Cli, serving
from gitkit import git, make_repository
from programkit import require
from runtimekit import StandIns
from terminalkit import talking

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "decisions" not in path.parts
]
LINE = re.compile(r"^(?: {4})?(?:\$ )?(trimtab(?: .*)?)$", re.MULTILINE)
IN_TEXT = re.compile(r"`(trimtab [^`]*)`")
COMMENT = re.compile(r"\s+#\s.*|\s{3,}.*")
PLACEHOLDERS = {
    r"\b21f3a967\b": "{session}",
    r"\bSESSION\b": "{session}",
    r"\bID\b": "{session}",
    r"\bCOMMAND\b": "undo",
    r"\bPATH\b": "my-skill",
    r"\bNAME\b": "prices",
    r"\bEVENT\b": "{event}",
    r"\bFILE\b": "out.txt",
    r"\bN\b": "1",
    "…": "x",
}
SERVERS = {
    "trimtab --headless --port 9001": "9001",
    "trimtab mock-model --script": "8085",
    "trimtab bridge --port": "8765",
    "trimtab bridge --json": "8765",
}
CONVERSATIONS = (
    "trimtab",
    "trimtab --plain",
    'trimtab "fix the failing test"',
    "trimtab --continue",
    "trimtab --resume",
    "trimtab --resume={session}",
)
ELSEWHERE = {
    "trimtab mcp login web": "needs a server and a browser, as tests/behaviour/test_mcp_sign_in.py",
    "trimtab models pull local": "fetches 1.1 GB, as `make foreign` does",
}
NAMED = (
    "trimtab -p",
    "trimtab attach",
    "trimtab bridge",
    "trimtab hooks test",
    "trimtab mcp test",
    "trimtab models probe",
    "trimtab permissions explain",
    "trimtab sessions delete",
    "trimtab sessions verify",
)
"""Commands that are mentioned without the argument they need: their help is shown."""
FIRST = {
    "trimtab redo": "trimtab undo",
    "trimtab mcp test shop": "trimtab mcp add shop -- python3 server.py",
    "trimtab mcp logout web": "trimtab mcp add web https://example.com/mcp",
    "trimtab mcp gateway": "trimtab mcp add prices -- python3 server.py",
    "trimtab worktrees remove": "trimtab -p x --worktree=fix",
    "trimtab sessions restore": "trimtab sessions delete {session}",
    "trimtab plugins trust": "trimtab plugins install ./prices",
    "trimtab simulate": "trimtab simulate --update",
}
"""Commands that a page shows earlier, by the beginning of those that need them."""
REFUSED = {
    "trimtab plugins install owner/repo#v1.2": (2, "owner/repo"),
    "trimtab plugins marketplace add owner/marketplace": (2, "owner/marketplace"),
    "trimtab plugins install tools@marketplace": (2, "marketplace"),
    'trimtab -p "explain this error" --attachment clipboard': (2, "clipboard"),
    "trimtab attach {session}": (2, "No process has the session"),
    **{
        f"trimtab fleet {action} {{session}}": (2, "There is no fleet")
        for action in ("show", "tail", "stop", "resume", "undo")
    },
    "trimtab fleet resume {session} --max-tokens 2000000": (2, "There is no fleet"),
    "trimtab tasks tail {session}": (1, "No task of a live session"),
    "trimtab tasks stop {session}": (1, "No task of a live session"),
    'trimtab tasks send {session} "Skip the slow tests."': (1, "No task of a live session"),
}
"""Commands that need a network, a screen or a live session: exit code and a word said."""


SPLIT = {
    "when": {"last": "Split the goal into todos"},
    "tools": [
        {
            "name": "sql",
            "arguments": {
                "description": "plan",
                "query": "INSERT INTO todos (id, title) VALUES ('receipt', 'Print receipts')",
            },
        }
    ],
}
"""The answer to the planning run of a fleet."""

ASKING = """#!/usr/bin/env python3
import os
from anthropic import Anthropic

reply = Anthropic(api_key=os.environ["TRIMTAB_BRIDGE_KEY"], max_retries=0).messages.create(
    model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
)
assert reply.content[0].text == "Done."
"""
"""A program that asks the bridge in whose environment it runs."""


def find_commands(page: Path) -> list[str]:
    """Return the commands of a page, each alternative of a bracket as a command of its own."""
    text = page.read_text()
    lines = [COMMENT.sub("", line) for line in LINE.findall(text)]
    found = (command for line in (*lines, *IN_TEXT.findall(text)) for command in spell_out(line))
    return list(dict.fromkeys(found))


def spell_out(command: str) -> Iterator[str]:
    command = command.replace("\\|", "|")
    for pattern, value in PLACEHOLDERS.items():
        command = re.sub(pattern, value, command)
    if (choice := re.search(r" (--context) (\w+)\|(\w+)", command)) is not None:
        for value in choice.groups()[1:]:
            yield command.replace(choice[0], f" {choice[1]} {value}")
        return
    bare = re.sub(r" \[[^]]*\]", "", command)
    yield bare.strip()
    for bracket in re.findall(r" \[([^]]*)\]", command):
        flag, _, values = bracket.partition(" ")
        alternatives = bracket.split("|")
        if values and "|" in values and "--" not in values:
            alternatives = [f"{flag} {value}" for value in values.split("|")]
        yield from (f"{bare} {alternative}" for alternative in alternatives)


COMMANDS = {str(page.relative_to(ROOT)): find_commands(page) for page in PAGES}


def test_the_pages_show_commands() -> None:
    assert sum(map(len, COMMANDS.values())) > 90


async def furnish(cli: Cli) -> dict[str, str]:
    """Make the project of the pages, with one finished session; return what placeholders mean."""
    files = {
        "a.txt": "one\ntwo\nthree\n",
        "prices.py": "PRICE = 1\n",
        "src/prices.py": "PRICE = 1\n" * 50,
        "old/prices.py": "PRICE = 0\n",
        "check.py": "import prices\n",
        "server.py": "from mcpserver import main\nmain('', '')\n",
        "script.yaml": "- text: Done.\n",
        "plan.json": '{"todos": [{"id": "discount"}, {"id": "receipt", "depends_on": ["discount"]}]}',
        "my-skill/SKILL.md": "---\nname: my-skill\ndescription: d\n---\nDo it.\n",
        "my-plugin/plugin.json": '{"name": "my-plugin"}',
        "prices/plugin.json": '{"name": "prices"}',
        ".github/agents/prices.md": "---\nname: prices\ndescription: d\n---\nCheck.\n",
        ".github/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: d\n---\nDeploy.\n",
        ".gitignore": "*.jsonl\n",
        "tests/scenarios/greet/scenario.json": '{"prompts": ["hi"]}',
        "tests/scenarios/greet/answers.yaml": "- text: Hello.\n",
        "bin/claude": ASKING,
        "bin/codex": ASKING,
    }
    for name, text in files.items():
        (cli.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.cwd / name).write_text(text)
        (cli.cwd / name).chmod(0o755)
    pixel = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    (cli.cwd / "Screenshot 1.png").write_bytes(bytes.fromhex(pixel))
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    make_repository(cli.cwd)
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-qm", "start")
    edit = {"path": str(cli.cwd / "a.txt"), "old_str": "two", "new_str": "TWO"}
    replies = [{"tools": [{"name": "edit", "arguments": edit}]}, {"text": "Done."}]
    async with serving(replies) as server:
        outcome = await cli.use(server).ask("change two")
    assert outcome.code == 0, outcome.notes
    event = next(line["id"] for line in outcome.lines if line["type"] == "assistant.turn_end")
    return {"session": outcome.result["sessionId"], "event": event}


@pytest.mark.parametrize(
    "command",
    list(dict.fromkeys(command for commands in COMMANDS.values() for command in commands)),
)
async def test_every_command_on_every_page_runs(cli: Cli, command: str) -> None:
    if command in ELSEWHERE:
        pytest.skip(f"{command} {ELSEWHERE[command]}")
    if "--sandbox" in command and "--allow-url" in command:
        require("bubblewrap")
    means = await furnish(cli)
    programs = f"{os.path.dirname(sys.executable)}:{cli.cwd / 'bin'}"
    cli.env |= {"PATH": f"{programs}:{cli.env['PATH']}", "PROMPT": "do it"}
    cli.env["PYTHONPATH"] = str(ROOT / "tests")
    if "runtime" in command or "--continue -p" in command:
        StandIns(cli)
    last: dict[str, object] = {"text": "Done."}
    if "--autopilot" in command:
        last = {"tools": [{"name": "task_complete", "arguments": {"summary": "Done."}}]}
    replies = [last] * 20
    if "--plan --mode autopilot" in command:
        done: dict[str, object] = {
            "tools": [{"name": "task_complete", "arguments": {"summary": "Done."}}]
        }
        replies = [last, done]
    async with serving([SPLIT, *replies]) as server:
        cli.use(server)
        for start, earlier in FIRST.items():
            if command.startswith(start):
                await run_as_shown(cli, earlier, means)
        await run_as_shown(cli, command, means)


async def run_as_shown(cli: Cli, command: str, means: dict[str, str]) -> None:
    line = command.format(**means) if re.search(r"{(session|event)}", command) else command
    if command in CONVERSATIONS:
        words = [word.strip('"') for word in line.split(" ", 1)[1:]]
        async with talking(cli, *words) as terminal:
            await terminal.shows(r"> $")
        return
    server = next((port for start, port in SERVERS.items() if command.startswith(start)), None)
    if server is not None:
        await serve(cli, line, server)
        return
    if command in NAMED:
        line = f"{line.removesuffix(' -p')} --help"
    ran = await cli.run("-c", line, program="bash", stdin=b"")
    code, said = REFUSED.get(command, (0, ""))
    assert ran.code == code, f"{line}\n{ran.notes}"
    assert said in ran.notes + ran.text


async def serve(cli: Cli, line: str, port: str) -> None:
    """Start a server until it says where it listens."""
    free = re.sub(rf"\b{port}\b", "0", line)
    process = await cli.start(
        "-c", f"exec {free}", program="bash", stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            said = await process.stdout.readline()
    finally:
        process.terminate()
        await process.wait()
    assert re.search(rb"\d{4,5}", said), f"{line}\n{said!r}"
