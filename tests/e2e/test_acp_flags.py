"""Every flag that shapes a session, tried through an editor."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import acp
import msgspec
import pytest

from acpkit import Link, connected
from clikit import Cli, bash, serving
from gitkit import git
from mcpkit import PYTHON, SCRIPT, HttpPeer, serving_http
from runtimekit import StandIns, logged
from trimtab.cli.flags import FLAGS
from trimtab.workspace.sandbox.detection import try_all


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments}]}


def run(command: str) -> dict[str, Any]:
    return {"tools": [bash(command)]}


class Tried(msgspec.Struct):
    """What a check looks at."""

    link: Link
    server: Any
    cli: Cli
    opened: Any
    stop: str

    @property
    def asked(self) -> int:
        return len(self.link.editor.asked)

    @property
    def request(self) -> Any:
        return self.server.requests[-1].json

    @property
    def tools(self) -> set[str]:
        return {tool["function"]["name"] for tool in self.server.requests[0].json["tools"]}

    @property
    def made(self) -> bool:
        return (self.cli.cwd / "made").exists()

    @property
    def worktree(self) -> Path:
        [made] = self.cli.cwd.parent.rglob("made")
        return made.parent

    @property
    def inside(self) -> bool:
        """True if the command ran, in a sandbox or not at all where none works."""
        return self.made or try_all(os.environ["PATH"]).backend is None

    @property
    def spent(self) -> bool:
        return self.stop == "max_tokens" and len(self.server.requests) == 1

    @property
    def statuses(self) -> list[str]:
        return [call["status"] for call in self.link.editor.calls().values()]


class Row(msgspec.Struct, frozen=True):
    """Flags, the model's replies, and what must hold after one prompt."""

    flags: list[str]
    check: Callable[[Tried], Any]
    replies: Sequence[Any] = ("hello",)


MAKE = [run("touch made"), "done"]
SPENDING = [
    {"tools": [bash("true")], "usage": {"input": 100_000, "output": 10}},
    "never",
]
OUTSIDE = [use("view", path="{outside}/note.txt"), "done"]
SERVERS = json.dumps(
    {"mcpServers": {"small": {"command": PYTHON[0], "args": [*PYTHON[1:], SCRIPT]}}}
)
ROWS: dict[str, Row] = {
    "--model": Row(["--model", "other"], lambda t: t.request["model"] == "other"),
    "--fallback-model": Row(
        ["--fallback-model", "spare"],
        lambda t: t.request["model"] == "spare" and t.stop == "end_turn",
        [{"error": {"status": 404, "message": "gone"}}, "spared"],
    ),
    "--offline": Row(["--offline"], lambda t: "web_fetch" not in t.tools),
    "--effort": Row(["--effort", "high"], lambda t: t.request["reasoning_effort"] == "high"),
    "--stream": Row(["--stream", "off"], lambda t: not t.request.get("stream")),
    "--mode": Row(["--mode", "plan"], lambda t: t.opened.modes.current_mode_id == "plan"),
    "--plan": Row(["--plan"], lambda t: not t.made and t.asked == 0, MAKE),
    "--autopilot": Row(
        ["--autopilot", "--max-autopilot-continues", "1"],
        lambda t: "task_complete" in t.tools,
        ["a", "b", "c"],
    ),
    "--max-autopilot-continues": Row(
        ["--autopilot", "--max-autopilot-continues", "1"],
        lambda t: t.stop == "max_turn_requests" and len(t.server.requests) == 2,
        ["a", "b", "c"],
    ),
    "--max-turns": Row(
        ["--max-turns", "1"], lambda t: t.stop == "max_turn_requests", [run("true"), "a", "b"]
    ),
    "--max-tokens": Row(["--max-tokens", "1"], lambda t: t.stop == "max_tokens"),
    "--deadline": Row(
        ["--deadline", "1s"],
        lambda t: t.stop == "max_turn_requests",
        [{"text": "late", "delay": 30}],
    ),
    "--max-repeats": Row(
        ["--max-repeats", "2"],
        lambda t: t.stop == "max_turn_requests",
        [run("true") for _ in range(9)],
    ),
    "--worktree": Row(
        ["--worktree", "side"],
        lambda t: not t.made and "side" in str(list((t.cli.cwd.parent).rglob("made"))),
        MAKE,
    ),
    "--allow-all": Row(["--allow-all"], lambda t: t.made and t.asked == 0, MAKE),
    "--yolo": Row(["--yolo"], lambda t: t.made and t.asked == 0, MAKE),
    "--allow-all-tools": Row(["--allow-all-tools"], lambda t: t.made and t.asked == 0, MAKE),
    "--allow-all-paths": Row(["--allow-all-paths"], lambda t: t.asked == 0, OUTSIDE),
    "--allow-tool": Row(
        ["--allow-tool", "shell(touch:*)"], lambda t: t.made and t.asked == 0, MAKE
    ),
    "--deny-tool": Row(
        ["--allow-all", "--deny-tool", "shell(touch:*)"],
        lambda t: not t.made and t.asked == 0 and t.statuses == ["failed"],
        MAKE,
    ),
    "--deny-url": Row(
        ["--allow-all", "--deny-url", "example.com"],
        lambda t: t.statuses == ["failed"] and t.asked == 0,
        [use("web_fetch", url="https://example.com/"), "done"],
    ),
    "--allow-url": Row(
        ["--allow-url", "http://127.0.0.1:9"],
        lambda t: t.asked == 0,
        [use("web_fetch", url="http://127.0.0.1:9/"), "done"],
    ),
    "--allow-all-urls": Row(
        ["--allow-all-urls"],
        lambda t: t.asked == 0,
        [use("web_fetch", url="http://127.0.0.1:9/"), "done"],
    ),
    "--allow-destructive": Row(
        ["--allow-all-tools", "--allow-destructive"],
        lambda t: t.asked == 0,
        [run("rm -rf missing-folder"), "done"],
    ),
    "--add-dir": Row(["--add-dir", "{outside}"], lambda t: t.asked == 0, OUTSIDE),
    "--disallow-temp-dir": Row(
        ["--disallow-temp-dir"],
        lambda t: t.asked == 1,
        [use("view", path="/tmp/no-such-file"), "done"],
    ),
    "--trust-folder": Row(["--trust-folder"], lambda t: "Trusted rule." in str(t.request)),
    "--secret-env-vars": Row(
        ["--secret-env-vars", "HIDDEN", "--allow-all"],
        lambda t: "s3cr3t-value" not in str(t.request),
        [run("echo $HIDDEN"), "done"],
    ),
    "--available-tools": Row(["--available-tools", "view"], lambda t: t.tools == {"view"}),
    "--excluded-tools": Row(["--excluded-tools", "bash"], lambda t: "bash" not in t.tools),
    "--agent": Row(["--agent", "poet"], lambda t: "Always rhyme." in str(t.request)),
    "--additional-mcp-config": Row(
        ["--additional-mcp-config", SERVERS, "--allow-all"],
        lambda t: "hi there" in str(t.request["messages"][-1]),
        [use("small-echo", text="hi there"), "done"],
    ),
    "--plugin-dir": Row(
        ["--plugin-dir", "{outside}/plugin"],
        lambda t: "plugged" in str(t.link.editor.of("available_commands_update")),
    ),
    "--no-custom-instructions": Row(
        ["--no-custom-instructions"], lambda t: "Be brief." not in str(t.request)
    ),
    "--log-dir": Row(
        ["--log-dir", "{outside}/logs", "--log-level", "info"],
        lambda t: list((t.cli.cwd.parent / "outside" / "logs").glob("*.log")),
    ),
    "--sandbox": Row(
        ["--sandbox", "--allow-all-tools"],
        lambda t: not (t.cli.cwd.parent / "outside" / "escaped").exists() and t.inside,
        [run("touch {outside}/escaped; touch made"), "done"],
    ),
    "--max-budget-usd": Row(["--max-budget-usd", "0.05"], lambda t: t.spent, SPENDING),
    "--max-ai-credits": Row(["--max-ai-credits", "5"], lambda t: t.spent, SPENDING),
    "--worktree-changes": Row(
        ["--worktree", "side", "--worktree-changes", "copy", "--allow-all"],
        lambda t: "not committed" in str(t.request["messages"][-1]),
        [run("cat pending.txt"), "done"],
    ),
    "--no-auto-commit": Row(
        ["--worktree", "side", "--no-auto-commit", "--allow-all"],
        lambda t: "?? made" in git(t.worktree, "status", "--short"),
        MAKE,
    ),
    "--no-ask-user": Row(
        ["--no-ask-user"],
        lambda t: not t.made and t.asked == 0 and t.statuses == ["failed"],
        MAKE,
    ),
    "--no-sandbox": Row(["--no-sandbox"], lambda t: t.made, MAKE),
    "--experimental": Row(["--experimental"], lambda t: t.stop == "end_turn"),
    "--feature": Row(["--feature", "DISABLE_WEB_TOOLS=on"], lambda t: "web_fetch" not in t.tools),
    "--agent-runtime": Row(
        ["--agent-runtime", "claude"],
        lambda t: t.made and t.asked == 1 and t.statuses == ["completed"],
    ),
    "--runtime-models": Row(
        ["--agent-runtime", "pi", "--runtime-models", "host", "--allow-all"],
        lambda t: t.made and logged(t.cli, "trimtab.runtime_started")[0]["models"] == "host",
    ),
    "--no-experimental": Row(["--no-experimental"], lambda t: t.stop == "end_turn"),
}
"""A row for each flag; the rows of the two below are shared."""
SHARED = {"--reasoning-effort": "--effort", "--log-level": "--log-dir"}
OTHERWISE = {"--enable-reasoning-summaries"}
"""Flags of sessions with a test of their own, because not every wire has what they ask for."""
TOKEN = {"COPILOT_GITHUB_TOKEN": "ghp_0123456789abcdef0123"}
OTHER_TOKEN = "ghp_9876543210fedcba9876"
GITHUB: dict[str, tuple[list[str], dict[str, str] | None]] = {
    "--add-github-mcp-tool": (
        ["--add-github-mcp-tool", "create_issue"],
        {"x-mcp-tools": "create_issue"},
    ),
    "--add-github-mcp-toolset": (
        ["--add-github-mcp-toolset", "gists"],
        {"x-mcp-toolsets": "default,gists"},
    ),
    "--enable-all-github-mcp-tools": (
        ["--enable-all-github-mcp-tools"],
        {"x-mcp-toolsets": "all"},
    ),
    "--auth-token-env": (
        ["--auth-token-env", "OTHER_TOKEN"],
        {"authorization": f"Bearer {OTHER_TOKEN}"},
    ),
    "--disable-builtin-mcps": (["--disable-builtin-mcps"], None),
    "--disable-mcp-server": (["--disable-mcp-server", "github-mcp-server"], None),
    "--no-auto-login": (["--no-auto-login"], None),
}
"""Flags about GitHub, with the headers its MCP server gets, or None if it is not contacted."""
GROUPS = ("model", "mode", "limits", "permission", "customization")
OTHER_GROUPS = {"--stream", "--no-ask-user", "--worktree", "--worktree-changes", "--no-auto-commit"}
"""Flags of a session that the help lists with those of prompts and of sessions."""


def test_every_flag_of_sessions_is_tried() -> None:
    names = {flag.names[-1] for flag in FLAGS if flag.group in GROUPS and not flag.hidden}
    assert names - ROWS.keys() - SHARED.keys() - GITHUB.keys() - OTHERWISE == set()
    assert ROWS.keys() >= OTHER_GROUPS


@pytest.mark.parametrize("flag", [("-C", "/"), ("--session-idle-timeout", "5"), ("--name", "x")])
async def test_a_flag_that_an_editor_decides_is_refused(tmp_path: Path, flag: list[str]) -> None:
    ran = await Cli(tmp_path).run("--acp", *flag)
    assert ran.code == 2
    assert "cannot be used together; leave one out." in ran.notes


async def test_a_missing_token_variable_is_told_to_editors_too(tmp_path: Path) -> None:
    ran = await Cli(tmp_path).run("--acp", "--auth-token-env", "NO_SUCH_TOKEN")
    assert ran.code == 2
    assert "NO_SUCH_TOKEN, which is not set" in ran.notes


@pytest.mark.parametrize("name", GITHUB)
async def test_a_flag_about_github_works_through_an_editor(tmp_path: Path, name: str) -> None:
    flags, headers = GITHUB[name]
    cli = Cli(tmp_path)
    async with serving(["hello"]) as server, serving_http() as peer, AsyncExitStack() as stack:
        cli.use(server)
        cli.env |= TOKEN | {"OTHER_TOKEN": OTHER_TOKEN}
        cli.env["COPILOT_API_URL"] = peer.url.removesuffix("/mcp")
        link = await stack.enter_async_context(connected(cli, *flags))
        await link.open()
        assert await link.say() == "end_turn"
        await link.editor.until(lambda: find_posts(peer) or not headers)
    sent = find_posts(peer)
    assert bool(sent) == bool(headers)
    assert not headers or headers.items() <= sent[0].items()
    assert name != "--no-auto-login" or not peer.requests


@pytest.mark.parametrize("flags", [["--enable-reasoning-summaries"], []])
async def test_summaries_of_reasoning_are_asked_for_through_an_editor(
    tmp_path: Path, flags: list[str]
) -> None:
    cli = Cli(tmp_path)
    cli.env["COPILOT_PROVIDER_WIRE_API"] = "responses"
    async with serving(["hello"]) as server, connected(cli.use(server), *flags) as link:
        await link.open()
        assert await link.say() == "end_turn"
        asked = server.requests[0].json.get("reasoning") or {}
    assert ("summary" in asked) == bool(flags)


def find_posts(peer: HttpPeer) -> list[dict[str, str]]:
    """Return the headers of the messages that the MCP server got; models are listed by GET."""
    return [headers for method, headers, _ in peer.requests if method == "POST"]


def prepare(cli: Cli, folder: Path) -> None:
    """A project with instructions, an agent, a rule of its own, and files elsewhere."""
    (folder / "plugin" / "skills" / "plugged").mkdir(parents=True)
    (folder / "note.txt").write_text("elsewhere\n")
    (folder / "plugin" / "plugin.json").write_text('{"name": "plug"}')
    (folder / "plugin" / "skills" / "plugged" / "SKILL.md").write_text(
        "---\nname: plugged\ndescription: Of the plugin\n---\nDo it.\n"
    )
    (cli.cwd / "AGENTS.md").write_text("Be brief.\n")
    skill = cli.cwd / ".github" / "skills" / "trusted"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: trusted\ndescription: Trusted rule.\n---\nX\n")
    (cli.home / "agents").mkdir()
    (cli.home / "agents" / "poet.md").write_text("---\ndescription: x\n---\nAlways rhyme.\n")
    cli.env["HIDDEN"] = "s3cr3t-value"
    StandIns(cli).plan({"run": "touch made"}, "done")


def set_price(cli: Cli, base_url: str) -> None:
    """Have the model cost a dollar for a million tokens of input."""
    del cli.env["COPILOT_PROVIDER_BASE_URL"], cli.env["COPILOT_MODEL"]
    registry = {
        "providers": [{"name": "p", "baseUrl": base_url, "defaultModel": "m"}],
        "models": [{"id": "m", "provider": "p", "price": {"input": 1.0, "output": 2.0}}],
        "default": "p/m",
    }
    (cli.home / "providers.json").write_text(json.dumps(registry))


@pytest.mark.needs("git")
@pytest.mark.parametrize("name", ROWS)
async def test_a_flag_works_through_an_editor(tmp_path: Path, name: str) -> None:
    row, cli, outside = ROWS[name], Cli(tmp_path), tmp_path / "outside"
    prepare(cli, outside)
    if "--worktree" in row.flags:
        git(cli.cwd, "init", "-q")
        git(cli.cwd, "add", "-A")
        git(cli.cwd, "commit", "-q", "-m", "first")
        (cli.cwd / "pending.txt").write_text("not committed\n")

    def fill(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{outside}", str(outside)))

    flags = fill(row.flags)
    if name in ("--allow-all-paths", "--add-dir"):
        # The temp directory is allowed by default, and these tests run in it.
        flags.append("--disallow-temp-dir")
    if name == "--sandbox":  # the temp directory is writable, and these tests run in it
        cli.env["TMPDIR"] = str(tmp_path / "temp")
        (tmp_path / "temp").mkdir()
    async with serving(fill(row.replies)) as server, AsyncExitStack() as stack:
        cli.use(server)
        if row.replies is SPENDING:
            set_price(cli, server.base_url)
        link = await stack.enter_async_context(connected(cli, *flags))
        opened = await link.open()
        try:
            stop = await link.say()
        except acp.RequestError as error:
            stop = str(error)
        await link.editor.until(lambda: link.editor.of("available_commands_update"))
        tried = Tried(link, server, cli, opened, stop)
        assert row.check(tried), (stop, link.editor.calls(), link.editor.text())
