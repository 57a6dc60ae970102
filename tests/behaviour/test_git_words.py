"""Git slash commands: /commit, /sync, /merge and those for pull requests, in real repositories."""

import json
import sys
from pathlib import Path

import pytest

import forgeserver
import ghkit
import mcp_fixtures
from clikit import Cli, bash, serving
from gitkit import git, make_repository
from mcpkit import configure

ALL_GIT = ("--allow-tool", "shell(git:*)", "--allow-tool", "shell(gh:*)")
MESSAGE = "Say goodbye\n\nGreetings alone were rude."
pytestmark = pytest.mark.needs("git")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A clone with one commit and one changed file, and the bare repository it came from."""
    cli = Cli(tmp_path)
    bare = tmp_path / "origin.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    make_repository(cli.cwd)
    (cli.cwd / "hello.txt").write_text("hello\n")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-q", "-m", "First words")
    git(cli.cwd, "remote", "add", "origin", str(bare))
    git(cli.cwd, "push", "-q", "-u", "origin", "main")
    git(cli.cwd, "remote", "set-head", "origin", "main")
    (cli.cwd / "hello.txt").write_text("hello\ngoodbye\n")
    return cli


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return tmp_path / "origin.git"


@pytest.mark.proves("VSC-09")
async def test_commit_commits_everything_with_a_message_of_the_model(cli: Cli) -> None:
    (cli.cwd / "new.txt").write_text("new words\n")
    async with serving([MESSAGE]) as server:
        ran = await cli.use(server).run("-p", "/commit in one sentence", *ALL_GIT)
        [request] = server.requests
    assert ran.code == 0, ran.notes
    assert "Committed 2 files on main: " in ran.text
    assert git(cli.cwd, "log", "-1", "--format=%B").strip() == MESSAGE
    assert git(cli.cwd, "log", "-1", "--format=%an").strip() == "Person"
    assert git(cli.cwd, "status", "--porcelain") == ""
    asked = str(request.json["messages"])
    for part in ("+goodbye", "new words", "First words", "in one sentence"):
        assert part in asked


async def test_commit_commits_only_what_is_staged(cli: Cli) -> None:
    (cli.cwd / "new.txt").write_text("new words\n")
    git(cli.cwd, "add", "new.txt")
    async with serving(["Add new words"]) as server:
        ran = await cli.use(server).run("-p", "/commit", *ALL_GIT)
        assert "goodbye" not in str(server.requests[0].json["messages"])
    assert "Committed 1 file" in ran.text
    assert git(cli.cwd, "status", "--porcelain") == " M hello.txt\n"


@pytest.mark.proves("VSC-09")
@pytest.mark.parametrize("flags", [(), ("--allow-all", "--deny-tool", "shell(git commit)")])
async def test_a_word_is_held_to_the_rules(cli: Cli, flags: tuple[str, ...]) -> None:
    async with serving([MESSAGE]) as server:
        ran = await cli.use(server).run("-p", "/commit", *flags)
    assert ran.code == 4
    assert "was not done: " in ran.notes
    assert git(cli.cwd, "rev-list", "--count", "HEAD").strip() == "1"
    assert git(cli.cwd, "diff", "--name-only", "--cached") == ""


async def test_a_word_stands_in_the_log_as_a_call_of_the_person(cli: Cli) -> None:
    async with serving([MESSAGE]) as server:
        ran = await cli.use(server).run("-p", "/commit", "--output-format", "json", *ALL_GIT)
    [requested] = ran.of("tool.user_requested")
    [done] = ran.of("tool.execution_complete")
    assert requested["toolCallId"] == done["toolCallId"]
    assert "git add -A && git commit" in requested["arguments"]["command"]
    assert '"purpose":"commit"' in cli.logs()[0].read_text()


async def test_nothing_to_commit_and_no_repository_are_told(cli: Cli, tmp_path: Path) -> None:
    git(cli.cwd, "checkout", "-q", "hello.txt")
    async with serving([]) as server:
        ran = await cli.use(server).run("-p", "/commit")
        assert "There is nothing to commit." in ran.text
        folder = tmp_path / "empty"
        folder.mkdir()
        ran = await cli.run("-C", str(folder), "-p", "/commit")
    assert ran.code == 2
    assert "is not in a git repository; create one with `git init`." in ran.notes


@pytest.mark.proves("VSC-09")
async def test_sync_takes_over_what_others_pushed_and_pushes(
    cli: Cli, bare: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(bare), str(other))
    (other / "theirs.txt").write_text("theirs\n")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "Theirs")
    git(other, "push", "-q")
    git(cli.cwd, "commit", "-q", "-a", "-m", "Ours")
    (cli.cwd / "hello.txt").write_text("not committed\n")
    async with serving([]) as server:
        ran = await cli.use(server).run("-p", "/sync", *ALL_GIT)
        assert ran.code == 0, ran.notes
        assert "took over 1 commit of origin/main; pushed main to origin." in ran.text
        again = await cli.run("-p", "/sync", *ALL_GIT)
    assert "main and origin/main are the same." in again.text
    assert {"Ours", "Theirs"} < set(git(bare, "log", "--format=%s", "main").split("\n"))
    assert (cli.cwd / "hello.txt").read_text() == "not committed\n"


async def test_sync_leaves_everything_as_it_was_when_both_changed_a_file(
    cli: Cli, bare: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(bare), str(other))
    (other / "hello.txt").write_text("theirs\n")
    git(other, "commit", "-q", "-a", "-m", "Theirs")
    git(other, "push", "-q")
    git(cli.cwd, "commit", "-q", "-a", "-m", "Ours")
    before = git(cli.cwd, "rev-parse", "HEAD")
    async with serving([]) as server:
        ran = await cli.use(server).run("-p", "/sync", *ALL_GIT)
    assert ran.code != 0
    assert "hello.txt was changed here and in origin/main; nothing was changed." in ran.notes
    assert git(cli.cwd, "rev-parse", "HEAD") == before
    assert git(cli.cwd, "status", "--porcelain") == ""


@pytest.mark.proves("VSC-09")
async def test_merge_brings_a_branch_in_or_takes_the_merge_back(cli: Cli) -> None:
    git(cli.cwd, "stash", "-q")
    git(cli.cwd, "switch", "-q", "-c", "side")
    (cli.cwd / "side.txt").write_text("side\n")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-q", "-m", "Side")
    git(cli.cwd, "switch", "-q", "main")
    async with serving([]) as server:
        ran = await cli.use(server).run("-p", "/merge side", *ALL_GIT)
        assert "Merged side into main" in ran.text
        assert (
            "main has all of side already." in (await cli.run("-p", "/merge side", *ALL_GIT)).text
        )
        git(cli.cwd, "switch", "-q", "side")
        (cli.cwd / "hello.txt").write_text("other\n")
        git(cli.cwd, "commit", "-q", "-a", "-m", "Other")
        git(cli.cwd, "switch", "-q", "main")
        (cli.cwd / "hello.txt").write_text("another\n")
        git(cli.cwd, "commit", "-q", "-a", "-m", "Another")
        ran = await cli.run("-p", "/merge side", *ALL_GIT)
        missing = await cli.run("-p", "/merge nowhere", *ALL_GIT)
    assert "hello.txt was changed in side and in main; the merge was taken back." in ran.notes
    assert git(cli.cwd, "status", "--porcelain") == ""
    assert "There is no branch nowhere" in missing.notes


@pytest.mark.proves("VSC-09", "VSC-10")
@pytest.mark.parametrize("word", ["/create-pr", "/create-draft-pr"])
async def test_a_pull_request_is_opened_from_a_branch_of_its_own(
    cli: Cli, bare: Path, tmp_path: Path, word: str
) -> None:
    state = ghkit.install(tmp_path / "bin", bare)
    cli.env["PATH"] = f"{tmp_path / 'bin'}:{cli.env['PATH']}"
    replies = ["Say Goodbye!", MESSAGE, "Say goodbye, too\n\nIt was rude."]
    async with serving(replies) as server:
        flags = ("--output-format", "json", *ALL_GIT)
        ran = await cli.use(server).run("-p", word, *flags)
    assert ran.code == 0, ran.notes
    [opened] = json.loads(state.read_text()).values()
    assert opened["--head"] == "say-goodbye"
    assert opened["--title"] == "Say goodbye, too"
    assert opened["--body"] == "It was rude."
    assert ("--draft" in opened) == (word == "/create-draft-pr")
    [event] = ran.of("trimtab.pull_request_opened")
    assert event["url"] == f"{ghkit.ADDRESS}1"
    assert git(bare, "log", "-1", "--format=%s", "say-goodbye").strip() == "Say goodbye"
    assert git(cli.cwd, "rev-parse", "main") == git(bare, "rev-parse", "main")


@pytest.mark.proves("VSC-09")
async def test_update_pr_pushes_and_writes_the_text_again(
    cli: Cli, bare: Path, tmp_path: Path
) -> None:
    state = ghkit.install(tmp_path / "bin", bare)
    cli.env["PATH"] = f"{tmp_path / 'bin'}:{cli.env['PATH']}"
    replies = ["branch-name", "First", "Title", "Second", "Better title\n\nBetter text"]
    async with serving(replies) as server:
        await cli.use(server).run("-p", "/create-pr", *ALL_GIT)
        (cli.cwd / "more.txt").write_text("more\n")
        ran = await cli.run("-p", "/update-pr", *ALL_GIT)
    assert ran.code == 0, ran.notes
    assert f"Updated the pull request: {ghkit.ADDRESS}1" in ran.text
    [opened] = json.loads(state.read_text()).values()
    assert opened["--title"] == "Better title"
    assert git(bare, "log", "-1", "--format=%s", "branch-name").strip() == "Second"


@pytest.mark.parametrize(
    ("written", "subject"),
    [
        ("Rename `price` to `cost`", "Rename `price` to `cost`"),
        ("`price` becomes `cost`", "`price` becomes `cost`"),
        ('Say "goodbye"', 'Say "goodbye"'),
        ('"Say goodbye"', "Say goodbye"),
        ("`Say goodbye`", "Say goodbye"),
        ("```\n# Say goodbye\n```", "Say goodbye"),
    ],
)
async def test_only_quotes_around_a_whole_message_are_removed(
    cli: Cli, bare: Path, written: str, subject: str
) -> None:
    async with serving([written]) as server:
        ran = await cli.use(server).run("-p", "/commit", *ALL_GIT)
    assert ran.code == 0, ran.notes
    assert git(cli.cwd, "log", "-1", "--format=%s").strip() == subject


OPENED = "https://github.com/owner/project/pull/9"


@pytest.mark.proves("VSC-10")
@pytest.mark.parametrize(
    ("command", "recorded"),
    [
        (f"echo {OPENED} '# gh pr create'", [OPENED]),
        (f"echo {OPENED}", []),
        (f"echo {OPENED} '# gh pr create'; exit 1", []),
        ("echo https://github.com/owner/project/issues/9 '# gh pr create'", []),
    ],
)
async def test_the_address_of_a_pull_request_is_taken_from_what_opened_it_and_nothing_else(
    cli: Cli, command: str, recorded: list[str]
) -> None:
    async with serving([{"tools": [bash(command)]}, "Done."]) as server:
        ran = await cli.use(server).ask("propose it")
    assert [event["url"] for event in ran.of("trimtab.pull_request_opened")] == recorded


def name_origin(cli: Cli, bare: Path) -> None:
    """Have the remote be one of GitHub's by its address, and the bare repository in fact."""
    git(cli.cwd, "remote", "set-url", "origin", "git@github.com:owner/project.git")
    git(cli.cwd, "config", "remote.origin.pushurl", str(bare))


async def test_without_gh_the_branch_is_pushed_and_the_address_is_told(
    cli: Cli, bare: Path
) -> None:
    name_origin(cli, bare)
    async with serving(["fix it", "Fix it"]) as server:  # nobody would read a description
        ran = await cli.use(server).run("-p", "/create-pr", *ALL_GIT)
    assert ran.code == 0, ran.notes
    address = "https://github.com/owner/project/compare/main...fix-it?expand=1"
    assert f"Open the pull request at {address}" in ran.text
    assert git(bare, "rev-parse", "fix-it") == git(cli.cwd, "rev-parse", "fix-it")


@pytest.mark.proves("VSC-09", "VSC-10")
async def test_a_server_for_pull_requests_opens_and_updates_them_without_gh(
    cli: Cli, bare: Path, tmp_path: Path
) -> None:
    name_origin(cli, bare)
    state = tmp_path / "forge.json"
    other = {"number": 1, "title": "Other", "head": {"ref": "other"}}
    state.write_text(json.dumps([other]))
    entry = {
        "command": sys.executable,
        "args": [forgeserver.__file__, str(state), str(bare)],
        "slowConnectionThresholdMs": 30_000,
    }
    configure(cli.home / "mcp-config.json", forge=entry)
    replies = ["fix it", "Fix it", "Fix it\n\nAll of it.", "More", "Better\n\nAnd more of it."]
    async with serving(replies) as server:
        opened = await cli.use(server).ask("/create-pr")
        (cli.cwd / "more.txt").write_text("more\n")
        updated = await cli.ask("/update-pr")
    assert (opened.code, updated.code) == (0, 0), opened.notes + updated.notes
    (event,) = opened.of("trimtab.pull_request_opened")
    assert event["url"] == f"{forgeserver.ADDRESS}2"
    assert f"Updated the pull request: {forgeserver.ADDRESS}2" in updated.text
    assert not updated.of("trimtab.pull_request_opened")
    untouched, found = json.loads(state.read_text())
    assert untouched == other
    assert (found["title"], found["body"]) == ("Better", "And more of it.")
    assert git(bare, "log", "-1", "--format=%s", "fix-it").strip() == "More"


async def test_updating_needs_an_open_pull_request_and_asks_the_model_for_no_text_before(
    cli: Cli, bare: Path, tmp_path: Path
) -> None:
    name_origin(cli, bare)
    git(cli.cwd, "switch", "-qc", "mine")
    state = tmp_path / "forge.json"
    state.write_text(json.dumps([{"number": 1, "head": {"ref": "other"}}]))
    entry = {"command": sys.executable, "args": [forgeserver.__file__, str(state), str(bare)]}
    configure(cli.home / "mcp-config.json", forge={**entry, "slowConnectionThresholdMs": 30_000})
    async with serving(["A message"]) as server:
        ran = await cli.use(server).ask("/update-pr")
        calls = len(server.requests)
    assert ran.code == 2
    assert (
        "mine has no open pull request; open one with /create-pr." in ran.result["error"]["message"]
    )
    assert calls == 1


@pytest.mark.proves("VSC-10")
async def test_a_server_for_pull_requests_is_used_before_gh(cli: Cli, bare: Path) -> None:
    name_origin(cli, bare)
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", forge={**entry, "slowConnectionThresholdMs": 30_000})
    replies = ["fix it", "Fix it", "Fix it\n\nAll of it."]
    async with serving(replies) as server:
        flags = ("--output-format", "json", "--allow-all")
        ran = await cli.use(server).run("-p", "/create-pr", *flags)
    assert ran.code == 0, ran.notes
    [event] = ran.of("trimtab.pull_request_opened")
    assert event["url"] == "https://github.com/owner/project/pull/7"
    [*_, call] = ran.of("tool.user_requested")
    assert call["arguments"] == {
        "owner": "owner",
        "repo": "project",
        "title": "Fix it",
        "body": "All of it.",
        "head": "fix-it",
        "base": "main",
        "draft": False,
    }
