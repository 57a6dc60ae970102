"""Which tools, skills and folders a session has, and what it may do unasked."""

import json
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from trimtab.testing.playing import play

DONE = {"text": "Done."}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    temp = tmp_path / "temp"
    temp.mkdir()
    cli.env["TMPDIR"] = str(temp)
    return cli


@pytest.mark.proves("PERM-02")
async def test_a_predicate_on_names_decides_which_tools_a_session_has() -> None:
    replies = [{"tools": [bash("true")]}, "done"]
    played = await play(replies, "go", tool_filter=lambda name: name.startswith("v"))
    assert [spec.name for spec in played.requests[0].tools] == ["view"]
    (end,) = played.of("tool.execution_complete")
    assert "does not exist" in end.error["message"]


@pytest.mark.proves("PERM-05")
async def test_skills_can_be_disabled_by_a_setting(cli: Cli) -> None:
    for name in ("wanted", "unwanted"):
        folder = cli.home / "skills" / name
        folder.mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: does {name} things\n---\nBody.\n"
        (folder / "SKILL.md").write_text(text)
    (cli.home / "settings.json").write_text(json.dumps({"disabledSkills": ["unwanted"]}))
    call = {"tools": [{"name": "skill", "arguments": {"skill": "unwanted"}}]}
    async with serving([call, DONE]) as server:
        outcome = await cli.use(server).ask("go")
        offered = server.requests[0].body.decode()
    assert "does wanted things" in offered
    assert "does unwanted things" not in offered
    assert outcome.of("tool.execution_complete")[0]["success"] is False


@pytest.mark.proves("PERM-09")
async def test_an_added_folder_may_be_read_and_no_other(cli: Cli, tmp_path: Path) -> None:
    for name in ("added", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"text of {name}\n")
    calls = [
        {"tools": [{"name": "view", "arguments": {"path": str(tmp_path / name / "file")}}]}
        for name in ("added", "other")
    ]
    calls += [{"tools": [bash(f"cat {tmp_path / name}/file")]} for name in ("added", "other")]
    async with serving([*calls, DONE]) as server:
        outcome = await cli.use(server).run(
            "-p", "go", "--output-format", "json", "--add-dir", str(tmp_path / "added")
        )
    ends = [data["success"] for data in outcome.of("tool.execution_complete")]
    assert ends == [True, False, True, False]
    assert "text of added" in outcome.text
    assert "text of other" not in outcome.text


@pytest.mark.proves("AUTO-14")
async def test_autopilot_with_everything_allowed_asks_nobody_anything(cli: Cli) -> None:
    calls = [
        bash("touch made && git init -q . && curl -s http://127.0.0.1:9/ || true"),
        {"name": "create", "arguments": {"path": str(cli.cwd / "new.txt"), "file_text": "x"}},
        {"name": "task_complete", "arguments": {"summary": "all done"}},
    ]
    async with serving([*({"tools": [call]} for call in calls), DONE]) as server:
        outcome = await cli.use(server).ask("go", "--autopilot")
    assert outcome.of("permission.requested") == []
    assert [data["success"] for data in outcome.of("tool.execution_complete")] == [True] * 3
    assert outcome.code == 0
