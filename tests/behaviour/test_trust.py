"""Trust in folders, in runs of the installed program: nothing of an untrusted one is obeyed."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from gitkit import git
from hookkit import stored, write_hooks

DONE = {"text": "Done."}
SPY = {"preToolUse": [{"type": "command", "bash": "touch $HOME/ran"}]}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    write_hooks(cli, SPY)
    return cli


async def run(cli: Cli, *args: str, **options: Any) -> Outcome:
    async with serving([{"tools": [bash("echo hi")]}, DONE]) as server:
        return await cli.use(server).ask("go", *args, **options)


def ran(cli: Cli) -> bool:
    marker = Path(cli.env["HOME"]) / "ran"
    found = marker.exists()
    marker.unlink(missing_ok=True)
    return found


def add_worktree(main: Path, tree: Path) -> None:
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tree))


def trust(cli: Cli, folder: Path) -> None:
    (cli.home / "config.json").write_text(
        json.dumps({"trusted_folders": [str(folder)], "last_logged_in_user": {"login": "x"}})
    )


async def test_a_headless_run_obeys_nothing_of_an_untrusted_folder_and_says_so(cli: Cli) -> None:
    (cli.cwd / ".mcp.json").write_text("{}")
    outcome = await run(cli)
    assert not ran(cli)
    (left,) = outcome.of("trimtab.left_out")
    assert left["reason"] == "untrusted"
    assert left["folder"] == str(cli.cwd)
    assert {"kind": "hooks", "path": ".github/hooks"} in left["items"]
    assert {"kind": "mcp", "path": ".mcp.json"} in left["items"]
    assert "--trust-folder" in left["message"]


async def test_a_folder_with_nothing_to_load_is_not_spoken_of(tmp_path: Path) -> None:
    outcome = await run(Cli(tmp_path))
    assert outcome.of("trimtab.left_out") == []


WAYS = [
    ("flag", ("--trust-folder",), {}),
    ("allow all", (), {"COPILOT_ALLOW_ALL": "true"}),
    ("switch", (), {"GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS": "true"}),
]


@pytest.mark.parametrize(("_", "args", "env"), WAYS, ids=[way[0] for way in WAYS])
async def test_one_run_can_be_told_to_trust_and_the_next_is_not(
    cli: Cli, _: str, args: tuple[str, ...], env: dict[str, str]
) -> None:
    outcome = await run(cli, *args, env=env)
    assert ran(cli)
    assert outcome.of("trimtab.left_out") == []
    await run(cli)
    assert not ran(cli)


async def test_allow_all_means_exactly_true(cli: Cli) -> None:
    await run(cli, env={"COPILOT_ALLOW_ALL": "1"})
    assert not ran(cli)


async def test_the_switch_for_hooks_opens_nothing_else(cli: Cli) -> None:
    (cli.cwd / ".mcp.json").write_text("{}")
    outcome = await run(cli, env={"GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS": "true"})
    (left,) = outcome.of("trimtab.left_out")
    assert left["items"] == [{"kind": "mcp", "path": ".mcp.json"}]


async def test_a_trusted_folder_and_what_is_below_it_are_trusted(cli: Cli) -> None:
    trust(cli, cli.cwd.parent)
    await run(cli)
    assert ran(cli)


async def test_from_a_subfolder_the_repository_counts(cli: Cli) -> None:
    (cli.cwd / ".git").mkdir()
    (cli.cwd / "src/.agents/skills/x").mkdir(parents=True)
    trust(cli, cli.cwd / "src")
    outcome = await run(cli, cwd=cli.cwd / "src")
    assert not ran(cli)
    paths = [item["path"] for item in outcome.of("trimtab.left_out")[0]["items"]]
    assert paths == [".github/hooks", "src/.agents/skills"]
    trust(cli, cli.cwd)
    await run(cli, cwd=cli.cwd / "src")
    assert ran(cli)


async def test_a_changed_hook_of_a_trusted_folder_does_not_run(cli: Cli) -> None:
    trust(cli, cli.cwd)
    await run(cli)
    assert ran(cli)
    changed = {"preToolUse": [*SPY["preToolUse"], {"bash": "touch $HOME/evil"}]}
    write_hooks(cli, changed)
    outcome = await run(cli)
    assert ran(cli), "the one that was not changed still runs"
    assert not (Path(cli.env["HOME"]) / "evil").exists()
    (left,) = outcome.of("trimtab.left_out")
    assert left["reason"] == "changed"
    assert "touch $HOME/evil" in left["items"][0]["path"]


async def test_a_changed_script_of_a_hook_counts_as_a_changed_hook(cli: Cli) -> None:
    trust(cli, cli.cwd)
    script = cli.cwd / "check.sh"
    script.write_text("touch $HOME/ran\n")
    write_hooks(cli, {"preToolUse": [{"bash": "bash ./check.sh"}]})
    await run(cli)
    assert ran(cli)
    script.write_text("touch $HOME/ran; echo more\n")
    outcome = await run(cli)
    assert not ran(cli)
    assert outcome.of("trimtab.left_out")[0]["reason"] == "changed"


async def test_a_folder_cannot_pass_for_a_worktree_of_a_trusted_repository(cli: Cli) -> None:
    trusted = cli.cwd.parent / "trusted"
    (trusted / ".git/worktrees/x").mkdir(parents=True)
    trust(cli, trusted)
    (cli.cwd / ".git").write_text(f"gitdir: {trusted}/.git/worktrees/x\n")
    await run(cli)
    assert not ran(cli)
    (trusted / ".git/worktrees/x/gitdir").write_text(f"{cli.cwd}/.git\n")
    await run(cli)
    assert ran(cli)


async def test_a_real_worktree_is_trusted_with_its_repository(cli: Cli) -> None:
    main, tree = cli.cwd.parent / "main", cli.cwd.parent / "tree"
    add_worktree(main, tree)
    trust(cli, main)
    (tree / ".github").symlink_to(cli.cwd / ".github")
    await run(cli, cwd=tree)
    assert ran(cli)


async def test_settings_of_the_machine_keep_what_is_not_known(cli: Cli) -> None:
    trust(cli, cli.cwd)
    await run(cli)
    content = json.loads((cli.home / "config.json").read_text())
    assert content["last_logged_in_user"] == {"login": "x"}


async def test_on_resume_trust_is_judged_anew(cli: Cli) -> None:
    await run(cli, "--trust-folder")
    assert ran(cli)
    await run(cli, "--continue")
    assert not ran(cli)
    assert stored(cli, "trimtab.left_out")


async def test_an_agent_cannot_change_what_runs_as_a_hook(cli: Cli) -> None:
    script = cli.cwd / "check.sh"
    script.write_text("touch $HOME/ran\n")
    write_hooks(cli, {"preToolUse": [{"bash": "bash ./check.sh"}], "agentStop": SPY["preToolUse"]})
    trust(cli, cli.cwd)
    calls = [bash("echo 'touch $HOME/owned' > check.sh"), bash("echo hi")]
    async with serving([*({"tools": [call]} for call in calls), DONE]) as server:
        outcome = await cli.use(server).ask("go")
    ends = outcome.of("tool.execution_complete")
    assert [end["success"] for end in ends] == [True, False]
    assert "a program it runs has changed" in ends[1]["error"]["message"]
    assert ran(cli), "the other hooks go on"
    assert not (cli.home.parent / "owned").exists()
    later = await run(cli)
    assert later.of("trimtab.left_out")[0]["reason"] == "changed"
    assert not (cli.home.parent / "owned").exists()


async def test_what_lies_between_the_repository_and_the_folder_is_told(cli: Cli) -> None:
    (cli.cwd / ".git").mkdir()
    between = cli.cwd / "packages/.github/agents"
    between.mkdir(parents=True)
    (between / "ann.md").write_text("---\ndescription: x\n---\nBe Ann.")
    (cli.cwd / "packages/web").mkdir()
    cli.cwd = cli.cwd / "packages/web"
    outcome = await run(cli)
    (left,) = outcome.of("trimtab.left_out")
    assert {"kind": "agents", "path": "packages/.github/agents"} in left["items"]


async def test_the_first_hook_or_rule_that_a_trusted_folder_gets_is_not_trusted_with_it(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    trust(cli, cli.cwd)
    (cli.cwd / ".github" / "skills" / "s").mkdir(parents=True)
    (cli.cwd / ".github" / "skills" / "s" / "SKILL.md").write_text("---\nname: s\n---\nx\n")
    assert not (await run(cli)).of("trimtab.left_out")
    write_hooks(cli, SPY)
    settings = cli.cwd / ".github" / "copilot" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"permissions": {"allow": ["shell(touch)"]}}))
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).run("-p", "go", "--output-format=json")
    assert not ran(cli)
    assert not (cli.cwd / "made").exists()
    left = outcome.of("trimtab.left_out")
    assert {one["reason"] for one in left} == {"changed"}
    assert {item["kind"] for one in left for item in one["items"]} == {"hooks", "rules"}
