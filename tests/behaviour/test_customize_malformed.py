"""Broken files of every kind: each is told of once, with its place; the rest loads, and quickly."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from clikit import TRIMTAB, Cli, serving
from customizekit import write
from measurekit import children_seconds

HEAD = "---\ndescription: d\n---\n"
Make = Callable[[Path], None]


def text(content: str | bytes) -> Make:
    return lambda path: (write(path, content), None)[1]


def fifo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def sparse(path: Path) -> None:
    write(path, "")
    os.truncate(path, 1 << 30)


def long(path: Path) -> None:
    write(path, HEAD + "word " * 200_000)


def link(target: str) -> Make:
    def make(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    return make


FILES: dict[str, Make] = {
    "AGENTS.md": fifo,
    "GEMINI.md": text(b"\0\1\2" * 50),
    "CLAUDE.md": link("CLAUDE.md"),
    "CLAUDE.local.md": link("/dev/zero"),
    ".github/copilot-instructions.md": sparse,
    ".cursorrules": long,
    ".github/instructions/a.instructions.md": text("---\napplyTo: [\n---\nx"),
    ".github/skills/yaml/SKILL.md": text("---\nname: [a\ndescription: x\n---\nb"),
    ".github/skills/open/SKILL.md": text("---\nname: a\n\nb"),
    ".github/skills/list/SKILL.md": text("---\n- a\n---\nb"),
    ".github/skills/deep/SKILL.md": text("---\nname: " + "[" * 5000 + "\n---\nb"),
    ".github/skills/digits/SKILL.md": text("---\nx: " + "9" * 5000 + "\n---\nb"),
    ".github/skills/code/SKILL.md": text("---\nx: !!python/object/apply:os.abort []\n---\nb"),
    ".github/skills/latin/SKILL.md": text(b"---\ndescription: caf\xe9\n---\nb"),
    ".github/skills/binary/SKILL.md": text(b"\x7fELF\0\0"),
    ".github/skills/fifo/SKILL.md": fifo,
    ".github/skills/huge/SKILL.md": sparse,
    ".github/skills/gone/SKILL.md": link("/proc/nowhere"),
    ".github/skills/circle/SKILL.md": link("SKILL.md"),
    ".github/skills/new\nline/SKILL.md": text(HEAD),
    ".github/agents/yaml.md": text("---\ntools: [\n---\nx"),
    ".github/agents/tools.md": text("---\ntools: {a: b}\n---\nx"),
    ".github/agents/fifo.md": fifo,
    ".github/agents/empty.md": text(""),
    ".github/agents/\x1b]0;title\x07.md": text(HEAD),
    ".codex/agents/toml.toml": text("name = \n"),
    ".gemini/commands/toml.toml": text('prompt = "x\n'),
    ".mcp.json": text('{\n  "mcpServers": {"a": 5}\n}'),
    ".vscode/mcp.json": text('{\n  "servers": {\n oops'),
    ".cursor/mcp.json": fifo,
    ".gemini/settings.json": text("[1]"),
    ".codex/config.toml": text("a = \n"),
    ".github/hooks/json.json": text('{"version": 1,\n"hooks": {'),
    ".github/hooks/fifo.json": fifo,
    ".github/copilot/settings.json": fifo,
    ".github/copilot/settings.local.json": text("{\n ,"),
    ".claude/settings.local.json": text("{\n]"),
}
LINES = {"yaml.md": 3, "toml.toml": 1, "latin": 2, "open": 1, "json.json": 2, "mcp.json": 2}
GOOD: dict[str, str | bytes] = {
    ".github/skills/good/SKILL.md": HEAD + "Good.",
    ".github/skills/windows/SKILL.md": b"\xef\xbb\xbf---\r\ndescription: crlf\r\n---\r\nx\r\n",
    ".github/agents/good.md": HEAD + "Be good.",
    ".claude/CLAUDE.md": "Good words. @../a.md",
    "a.md": "First. @b.md",
    "b.md": "Second. @a.md and @.claude/CLAUDE.md",
}


@pytest.fixture
def broken(cli: Cli) -> Cli:
    for name, make in FILES.items():
        make(cli.cwd / name)
    for name, content in GOOD.items():
        write(cli.cwd / name, content)
    (cli.cwd / ".github/skills/up").symlink_to("..")
    (cli.cwd / ".github/instructions/up").symlink_to("..")
    for name in (".claude.json", ".codex/AGENTS.md", ".claude/settings.json"):
        fifo(cli.home.parent / name)
    fifo(cli.home / "mcp-config.json")
    write(cli.home / "config.json", "{ broken")
    cli.env["COPILOT_ALLOW_ALL"] = "true"
    return cli


async def test_each_broken_file_is_one_clear_problem(broken: Cli) -> None:
    outcome = await broken.run("customizations", "--json")
    assert outcome.code == 0, outcome.notes
    shown = json.loads(outcome.text)
    problems = [*shown["problems"], *(p for e in shown["customizations"] for p in e["problems"])]
    real = [one for one in problems if one["severity"] == "problem"]
    told = {one["file"]: one for one in real}
    home, cwd = str(broken.home.parent) + "/", str(broken.cwd) + "/"
    theirs = {path.removeprefix(cwd) for path in told if path.startswith(cwd)}
    assert theirs == set(FILES)
    mine = {path.removeprefix(home) for path in told if not path.startswith(cwd)}
    assert mine >= {".claude.json", ".codex/AGENTS.md", "home/mcp-config.json", "home/config.json"}
    assert len(real) == len({(one["file"], one["message"]) for one in real}), "each only once"
    for end, line in LINES.items():
        found = [one["line"] for path, one in told.items() if end in path.replace("/SKILL.md", "")]
        assert line in found, end
    names = {(one["kind"], one["name"]) for one in shown["customizations"] if one["enabled"]}
    assert {("skill", "good"), ("skill", "windows"), ("agent", "good")} <= names


async def test_a_session_starts_all_the_same(broken: Cli) -> None:
    for name in ("json.json", "fifo.json"):  # a guard that cannot be read denies everything
        (broken.cwd / ".github/hooks" / name).unlink()
    async with serving([{"text": "Hello."}]) as server:
        outcome = await broken.use(server).ask("hi")
        system = server.requests[0].json["messages"][0]["content"]
    assert outcome.code == 0, outcome.notes
    assert system.count("Good words.") == system.count("First.") == system.count("Second.") == 1
    assert "- good: d" in system
    kinds = [one["warningType"] for one in outcome.of("session.warning")]
    assert kinds.count("customization") == 1


async def test_nothing_a_file_is_called_or_says_reaches_the_terminal_raw(broken: Cli) -> None:
    write(broken.cwd / ".github/skills/red/SKILL.md", '---\ndescription: "\\e[31mred"\n---\nx')
    for command in (("customizations",), ("skills",), ("agents",), ("prompt", "show")):
        outcome = await broken.run(*command)
        assert outcome.code == 0, outcome.notes
        assert not {"\x1b", "\x07"} & set(outcome.text), command


async def test_ten_thousand_skills_load_and_the_prompt_stays_small(cli: Cli) -> None:
    for number in range(10_000):
        write(cli.home / f"skills/s{number}/SKILL.md", f"---\ndescription: does {number}\n---\nx")
    async with serving([{"text": "Hello."}]) as server:
        before = children_seconds()
        outcome = await cli.use(server).ask("hi")
        spent = children_seconds() - before
        system = server.requests[0].json["messages"][0]["content"]
    assert outcome.code == 0
    assert len(outcome.of("session.skills_loaded")[-1]["skills"]) == 10_000
    assert len(system) < 60_000
    assert spent < 20


async def test_what_may_not_be_read_is_told_of() -> None:
    # Not below pytest's own folder: another run may close that to other users at any moment.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        await check_unreadable(Cli(Path(folder) / "cli"))


async def check_unreadable(cli: Cli) -> None:
    write(cli.cwd / ".github/skills/s/SKILL.md", HEAD)
    write(cli.cwd / ".github/agents/a.md", HEAD + "x")
    write(cli.cwd / "AGENTS.md", "x")
    write(cli.cwd / "CLAUDE.md", "fine")
    for name in (".github/skills", ".github/agents", "AGENTS.md"):
        (cli.cwd / name).chmod(0)
    words = [TRIMTAB, "customizations", "--json"]
    if os.geteuid() == 0:  # who may read everything
        shutil.chown(cli.home, 65534, 65534)
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
    program = shutil.which(words[0])
    outcome = await cli.run(*words[1:], program=program, env={"COPILOT_ALLOW_ALL": "true"})
    assert outcome.code == 0, outcome.notes
    shown = json.loads(outcome.text)
    told = {os.path.relpath(one["file"], cli.cwd): one["message"] for one in shown["problems"]}
    assert set(told) == {".github/skills", ".github/agents", "AGENTS.md"}
    assert all("Permission denied" in message for message in told.values())
    assert "CLAUDE.md" in {one["name"] for one in shown["customizations"]}
