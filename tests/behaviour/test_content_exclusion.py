"""Content exclusion in runs of the installed program: excluded files reach no tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from conformance import check_lines
from customizekit import write
from gitkit import git
from hookkit import tool_errors
from trimtab.testing.playing import play

pytestmark = pytest.mark.needs("git")
DONE = {"text": "Done."}
PIXEL = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def project(cli: Cli) -> Cli:
    """A repository with something to exclude."""
    git(cli.cwd, "init", "-q")
    git(cli.cwd, "remote", "add", "origin", "git@github.com:octo/app.git")
    write(cli.cwd / "src/.env", "TOKEN=hunter2\n")
    write(cli.cwd / "src/main.py", "TOKEN = read()\n")
    write(cli.cwd / "secrets/plan.txt", "TOKEN is hunter2\n")
    return cli


def exclude(cli: Cli, patterns: dict[str, list[str]]) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"contentExclusion": patterns}))


async def call(cli: Cli, *calls: dict[str, Any], flags: tuple[str, ...] = ()) -> tuple[Any, str]:
    """What comes of calls with everything allowed, and all that the model was shown."""
    replies = [{"tools": [one]} for one in calls]
    async with serving([*replies, DONE]) as server:
        outcome = await cli.use(server).ask("go", *flags)
        return outcome, server.requests[-1].body.decode()


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.proves("PERM-10")
async def test_no_tool_reads_or_changes_what_is_excluded(project: Cli) -> None:
    exclude(project, {"*": ["**/.env"], "https://github.com/Octo/app": ["/secrets/**"]})
    outcome, shown = await call(
        project,
        use("view", path="src/.env"),
        use("view", path="secrets/plan.txt"),
        use("edit", path="src/.env", old_str="TOKEN", new_str="X"),
        use("create", path="secrets/new.txt", file_text="x"),
        bash("cat src/.env"),
        bash("cp secrets/plan.txt copy"),
        bash("head secrets/*"),
    )
    errors = tool_errors(outcome)
    assert len(errors) == 7
    source = project.home / "settings.json"
    assert all(f"of {source} forbids" in error for error in errors), errors
    assert "The content exclusion '**/.env' of" in errors[0]
    assert "hunter2" not in shown
    assert (project.cwd / "src/.env").read_text() == "TOKEN=hunter2\n"
    assert not (project.cwd / "secrets/new.txt").exists()
    assert not (project.cwd / "copy").exists()


@pytest.mark.proves("PERM-10")
@pytest.mark.parametrize("folder", [".", "src"])
async def test_searches_leave_out_what_is_excluded_and_say_so(project: Cli, folder: str) -> None:
    exclude(project, {"*": ["**/.env"], "octo/app": ["/secrets/**"]})
    cwd = project.cwd / folder
    project.cwd = cwd
    outcome, shown = await call(
        project,
        use("grep", pattern="hunter2", output_mode="content"),
        use("glob", pattern="**/*"),
        use("grep", pattern="hunter2", path=str(cwd), output_mode="content"),
    )
    results = [data["result"]["content"] for data in outcome.of("tool.execution_complete")]
    assert all("content exclusion keeps from being read are left out" in one for one in results)
    assert "plan.txt" not in shown
    assert "TOKEN=hunter2" not in shown
    assert "No matches found." in results[0]


async def test_what_is_excluded_is_not_attached(project: Cli, tmp_path: Path) -> None:
    exclude(project, {"*": ["*.png", "/notes/**"]})
    write(tmp_path / "far/picture.png", PIXEL)
    write(project.cwd / "notes/a.txt", "x")
    async with serving([DONE]) as server:
        outcome = await project.use(server).ask(
            "see @notes/a.txt @notes @src/main.py", "--attachment", "../far/picture.png"
        )
        body = server.requests[0].body.decode()
    (told,) = outcome.of("user.message")
    assert [one["displayName"] for one in told["attachments"]] == ["main.py"]
    assert "image_url" not in body
    warnings = [data["message"] for data in outcome.of("session.warning")]
    assert len(warnings) == 3
    assert f"{tmp_path}/far/picture.png was not attached" in " ".join(warnings)


@pytest.mark.parametrize("flag", ["--allow-tool=read({}/)", "--allow-tool=write({}/)"])
async def test_an_exclusion_counts_in_a_repository_that_a_rule_opens(
    project: Cli, tmp_path: Path, flag: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "remote", "add", "origin", "git@github.com:octo/lib.git")
    write(other / "plans/one.txt", "hunter2\n")
    write(other / "read.me", "swordfish\n")
    exclude(project, {"https://github.com/octo/lib": ["/plans/**"]})
    calls = [use("view", path=f"{other}/plans/one.txt"), bash(f"cat {other}/plans/one.txt")]
    calls += [use("view", path=f"{other}/read.me"), bash(f"cat {other}/plans/*")]
    flags = ("--allow-all-tools", flag.format(other))
    _, shown = await call(project, *calls, flags=flags)
    assert "swordfish" in shown
    assert "hunter2" not in shown


async def test_an_exclusion_for_another_repository_does_not_count(project: Cli) -> None:
    exclude(project, {"https://github.com/octo/other": ["**/.env"]})
    outcome, shown = await call(project, use("view", path="src/.env"))
    assert tool_errors(outcome) == []
    assert "hunter2" in shown


async def test_an_exclusion_counts_in_a_repository_below_the_folder(
    project: Cli, tmp_path: Path
) -> None:
    exclude(project, {"git@github.com:*/app": ["/secrets"]})
    target = project.cwd / "secrets/plan.txt"
    project.cwd = tmp_path
    outcome, _ = await call(project, use("view", path=str(target)))
    assert "content exclusion" in tool_errors(outcome)[0]


async def test_excluded_files_are_kept_from_programs_in_the_sandbox_and_outside(
    project: Cli,
) -> None:
    exclude(project, {"*": ["**/.env"]})
    script = "import glob; print([open(p).read() for p in glob.glob('src/.*')])"
    write(project.cwd / "read.py", script)
    for flags in ((), ("--sandbox",)):
        _, shown = await call(project, bash("python3 read.py"), flags=flags)
        assert "hunter2" not in shown


@pytest.mark.parametrize(
    "given", [["x"], {"*": "x"}, {"*": [1]}, {"*": ["/"]}, {"*": ["{a"]}, {"*": ["[z-a]"]}]
)
async def test_an_exclusion_that_cannot_be_read_is_an_error_at_the_start(
    project: Cli, given: Any
) -> None:
    """It was left out with a warning, and the files were read."""
    (project.home / "settings.json").write_text(json.dumps({"contentExclusion": given}))
    async with serving([DONE]) as server:
        outcome = await project.use(server).ask("go")
        assert not server.requests
    assert outcome.code == 2
    assert "contentExclusion" in outcome.text + outcome.notes


async def test_a_folder_that_is_excluded_as_a_whole_is_not_searched(project: Cli) -> None:
    exclude(project, {"app": ["/secrets/**"]})
    project.cwd = project.cwd / "secrets"
    outcome, shown = await call(project, use("grep", pattern="hunter2", output_mode="content"))
    assert "content exclusion" in tool_errors(outcome)[0]
    assert "is hunter2" not in shown


async def test_a_session_says_in_its_event_that_content_is_excluded(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    settings = {"contentExclusion": {"*": [".env"]}}
    (tmp_path / "home/settings.json").write_text(json.dumps(settings))
    write(tmp_path / "project/.env", "x")
    played = await play(
        [{"tools": [use("view", path=".env")]}, "done"],
        "go",
        cwd=str(tmp_path / "project"),
        home=str(tmp_path / "home"),
    )
    check_lines(played.lines)
    (answer,) = played.of("permission.completed")
    assert answer.result["kind"] == "denied-by-content-exclusion-policy"
    assert answer.result["path"] == str(tmp_path / "project/.env")
    assert "settings.json" in answer.result["message"]
