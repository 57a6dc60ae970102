"""`trimtab undo`, `redo`, `rewind` and `blame`, as a person uses them after a run."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clikit import Cli, bash, serving
from gitkit import git, make_repository
from livekit import opened
from trimtab.testing.playing import ALLOW_ALL
from trimtab.undo.blobs import MAX_SIZE
from undokit import tree, work

LINES = "one\ntwo\nthree\nfour\nfive\nsix\n"


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit", "arguments": {"path": path, "old_str": old, "new_str": new}}


def create(path: str, text: str) -> dict[str, Any]:
    return {"name": "create", "arguments": {"path": path, "file_text": text}}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text(LINES)
    (cli.cwd / "tool.sh").write_text("#!/bin/sh\n")
    (cli.cwd / "tool.sh").chmod(0o755)
    return cli


@pytest.mark.proves("VSC-25")
async def test_undo_takes_back_edits_new_files_and_folders(cli: Cli) -> None:
    before = tree(cli.cwd)
    await work(cli, [edit("a.txt", "two\n", "TWO\n"), create("new/deep/c.txt", "hello\n")])
    changed = tree(cli.cwd)
    assert changed != before
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert tree(cli.cwd) == before
    assert (await cli.run("redo")).code == 0
    assert tree(cli.cwd) == changed
    assert (await cli.run("undo")).code == 0
    assert tree(cli.cwd) == before


async def test_a_deletion_that_undo_takes_back_needs_no_question_beyond_its_rule(cli: Cli) -> None:
    make_repository(cli.cwd)
    (cli.cwd / "old/deep").mkdir(parents=True)
    (cli.cwd / "old/deep/b.bin").write_bytes(bytes(range(256)))
    (cli.cwd / "old/ignored.env").write_text("SECRET=1\n")
    before = tree(cli.cwd)
    turns = [{"tools": [bash("rm -rf old && mkdir made")]}, {"tools": [bash("find . -delete")]}]
    async with serving([*turns, "done"]) as server:
        ran = await cli.use(server).run("-p", "go", "--output-format=json", "--allow-tool=write")
    assert [one["success"] for one in ran.of("tool.execution_complete")] == [True, False]
    assert not (cli.cwd / "old").exists()
    assert (cli.cwd / "made").is_dir(), "what would delete everything was not run"
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert tree(cli.cwd) == before


async def test_a_preview_shows_the_diff_and_changes_nothing(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n")])
    changed = tree(cli.cwd)
    preview = await cli.run("undo", "--preview")
    assert "-TWO" in preview.text
    assert "+two" in preview.text
    assert tree(cli.cwd) == changed
    assert "nothing has been changed" in preview.text


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("if x:\n    y\n", "if x:\n        y\n", ["-        y", "+    y"]),
        ("\ty\n", "        y\n", ["-        y", "+\ty"]),
        ("y  \n", "y\n", ["-y\n", "+y  \n"]),
        ("y\r\n", "y\n", ["-y\n", "+y⟨U+000D⟩\n"]),
        ("y\n", "y", ["-\\ No newline at end of file"]),
    ],
    ids=["indentation", "tabs", "trailing blanks", "carriage returns", "no last newline"],
)
async def test_a_preview_shows_a_change_of_white_space(
    cli: Cli, before: str, after: str, shown: list[str]
) -> None:
    (cli.cwd / "w.txt").write_bytes(before.encode())
    (cli.cwd / "new").write_bytes(after.encode())
    await work(cli, [bash("cp new w.txt")])
    preview = await cli.run("undo", "--preview")
    for line in shown:
        assert line in preview.text


async def test_deletions_moves_and_modes_by_the_shell_are_taken_back(cli: Cli) -> None:
    (cli.cwd / "sub").mkdir()
    (cli.cwd / "sub" / "data.bin").write_bytes(bytes(range(256)))
    (cli.cwd / "sub" / "link").symlink_to("../a.txt")
    (cli.cwd / "sub" / "empty").mkdir(mode=0o750)
    before = tree(cli.cwd)
    command = "mv a.txt b.txt; chmod 600 tool.sh; rm -r sub; echo x > made.txt"
    await work(cli, [bash(command)], flags=("--allow-destructive",))
    assert not (cli.cwd / "sub").exists()
    assert (await cli.run("undo")).code == 0
    assert tree(cli.cwd) == before


@pytest.mark.parametrize(
    "command",
    [
        "git clean -fdxq",
        "git reset -q --hard HEAD~1",
        "git commit -qam mine",
        "git stash -q --include-untracked",
        "git checkout -q HEAD~1 -- .",
        "git rm -qrf . && git commit -qm gone",
    ],
)
async def test_what_git_does_to_the_tree_and_its_branch_is_taken_back(
    cli: Cli, command: str
) -> None:
    (cli.cwd / ".gitignore").write_text("ignored\n")
    make_repository(cli.cwd)
    for text in ("first", "second"):
        (cli.cwd / "tracked.txt").write_text(text)
        git(cli.cwd, "add", "-A")
        git(cli.cwd, "commit", "-qm", text)
    (cli.cwd / "untracked.txt").write_text("precious")
    (cli.cwd / "ignored").write_text("precious too")
    (cli.cwd / "tracked.txt").write_text("not committed")
    before, log, status = (
        tree(cli.cwd),
        git(cli.cwd, "log", "--oneline"),
        git(cli.cwd, "status", "--short"),
    )
    await work(cli, [bash(command)], flags=("--allow-destructive",))
    undone = await cli.run("undo")
    assert undone.code == 0, undone.text
    assert tree(cli.cwd) == before
    assert git(cli.cwd, "log", "--oneline") == log
    assert git(cli.cwd, "status", "--short") == status


async def test_edits_of_the_person_since_are_kept_and_merged(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n")])
    path = cli.cwd / "a.txt"
    path.write_text(path.read_text().replace("five", "five, says the person"))
    assert (await cli.run("undo")).code == 0
    assert path.read_text() == LINES.replace("five", "five, says the person")


async def test_a_conflict_is_shown_and_nothing_is_written_to_that_file(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n"), create("b.txt", "b\n")])
    path = cli.cwd / "a.txt"
    path.write_text(path.read_text().replace("TWO", "mine"))
    changed = path.read_bytes()
    undone = await cli.run("undo", "--json")
    assert undone.code == 1
    told = json.loads(undone.text)
    assert [conflict["path"] for conflict in told["conflicts"]] == [str(path)]
    assert told["changed"] == [str(cli.cwd / "b.txt")]
    assert path.read_bytes() == changed


async def test_a_file_the_person_made_in_a_folder_of_ours_stays(cli: Cli) -> None:
    await work(cli, [create("new/c.txt", "c\n")])
    (cli.cwd / "new" / "mine.txt").write_text("mine")
    assert (await cli.run("undo")).code == 0
    assert (cli.cwd / "new" / "mine.txt").read_text() == "mine"
    assert not (cli.cwd / "new" / "c.txt").exists()


async def test_one_turn_one_file_or_one_hunk_can_be_taken_back(cli: Cli) -> None:
    await work(
        cli,
        [edit("a.txt", "one\n", "ONE\n"), create("b.txt", "b\n")],
        [edit("a.txt", "six\n", "SIX\n"), edit("a.txt", "three\n", "THREE\n")],
    )
    assert (await cli.run("undo", "--prompt", "1", "--file", "a.txt")).code == 0
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\nTHREE\nfour\nfive\nSIX\n"
    assert (cli.cwd / "b.txt").exists()
    assert (await cli.run("undo", "--turn", "2", "--file", "a.txt", "--hunk", "2")).code == 0
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\nTHREE\nfour\nfive\nsix\n"
    assert (await cli.run("redo")).code == 0
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\nTHREE\nfour\nfive\nSIX\n"


async def test_undo_goes_back_turn_by_turn_and_then_says_that_there_is_no_more(cli: Cli) -> None:
    before = tree(cli.cwd)
    await work(cli, [edit("a.txt", "one\n", "ONE\n")], [create("b.txt", "b\n")])
    assert (await cli.run("undo")).code == 0
    assert (await cli.run("undo")).code == 0
    assert tree(cli.cwd) == before
    last = await cli.run("undo")
    assert last.code == 2
    assert "no changes to undo" in last.notes


@pytest.mark.proves("VSC-25")
async def test_commands_are_undone_in_all_folders_of_the_workspace_with_and_without_git(
    cli: Cli, tmp_path: Path
) -> None:
    plain, repository = tmp_path / "plain", tmp_path / "repository"
    for folder in (plain, repository):
        folder.mkdir()
    make_repository(repository)
    (repository / "r.txt").write_text("before\n")
    (plain / "p.txt").write_text("before\n")
    trees = [tree(folder) for folder in (cli.cwd, plain, repository)]
    command = f"echo x > a.txt; rm {plain}/p.txt; echo new > {plain}/n; echo x > {repository}/r.txt"
    flags = ("--add-dir", str(plain), "--add-dir", str(repository))
    await work(cli, [bash(command)], flags=flags)
    assert (plain / "n").exists()
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert [tree(folder) for folder in (cli.cwd, plain, repository)] == trees


@pytest.mark.proves("VSC-25")
@pytest.mark.parametrize("after", [0, 1], ids=["before any command", "after a command"])
async def test_a_folder_that_is_added_later_is_tracked_too(tmp_path: Path, after: int) -> None:
    folder, later = tmp_path / "folder", tmp_path / "later"
    for made in (folder, later):
        made.mkdir()
    commands = [*["echo x > here"] * after, f"echo x > {later}/there"]
    script = [step for command in commands for step in ({"tools": [bash(command)]}, "done")]
    async with opened(folder, script) as (live, watch, _):
        for _ in range(after):
            await live.ask("first")
        added = msgspec.structs.replace(ALLOW_ALL, add_dirs=(str(later),))
        live.controls.set_permissions(added)
        await live.ask("now there")
    changed = watch.of("trimtab.workspace_changed")[-1]
    assert [(changed.reason, one.path) for one in changed.changes] == [
        ("shell", str(later / "there"))
    ]


@pytest.mark.proves("VSC-24")
async def test_rewind_goes_back_in_conversation_and_files(cli: Cli) -> None:
    before = tree(cli.cwd)
    await work(cli, [create("b.txt", "b\n")], [edit("a.txt", "two\n", "TWO\n")])
    listed = await cli.run("rewind")
    assert "turn 2" in listed.text
    rewound = await cli.run("rewind", "--prompt", "1")
    assert rewound.code == 0, rewound.notes
    assert tree(cli.cwd) == before
    assert (await cli.run("rewind")).text == ""
    assert (await cli.run("redo")).code == 0
    assert (cli.cwd / "b.txt").exists()
    assert "TWO" in (cli.cwd / "a.txt").read_text()


async def test_rewind_of_the_conversation_alone_leaves_files_that_can_still_be_undone(
    cli: Cli,
) -> None:
    before = tree(cli.cwd)
    await work(cli, [create("b.txt", "b\n")])
    changed = tree(cli.cwd)
    assert (await cli.run("rewind", "--prompt", "1", "--conversation")).code == 0
    assert tree(cli.cwd) == changed
    assert (await cli.run("undo")).code == 0
    assert tree(cli.cwd) == before


async def test_a_read_only_command_takes_no_snapshot(cli: Cli) -> None:
    await work(cli, [bash("cat a.txt")])
    assert not list(cli.home.glob("session-state/*/blobs"))


async def test_in_a_home_directory_undo_says_that_the_shell_is_not_covered(cli: Cli) -> None:
    async with serving([{"tools": [bash("touch x")]}, {"text": "Done."}]) as server:
        outcome = await cli.use(server).ask("go", env={"HOME": str(cli.cwd)})
    (limited,) = outcome.of("trimtab.snapshot_limited")
    assert "not a project folder" in limited["reason"]


async def test_other_tools_find_the_pre_images_in_copilots_layout(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n")])
    (index,) = cli.home.glob("session-state/*/rewind-file-snapshots/index.json")
    (message,) = json.loads(index.read_text())["messages"]
    (file,) = message["files"]
    assert (file["linesAdded"], file["linesRemoved"]) == (1, 1)
    backup = index.parent / "backups" / file["preImage"]["hash"]
    assert backup.read_text() == LINES


async def test_blame_says_who_wrote_each_line(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n")], [bash("echo seven >> a.txt")])
    path = cli.cwd / "a.txt"
    path.write_text(path.read_text().replace("four", "mine"))
    told = json.loads((await cli.run("blame", "a.txt", "--json")).text)["lines"]
    by_text = {line["text"].strip(): line for line in told}
    assert by_text["one"]["reason"] == "before"
    assert (by_text["TWO"]["reason"], by_text["TWO"]["turn"]) == ("tool", 1)
    assert (by_text["seven"]["reason"], by_text["seven"]["turn"]) == ("shell", 2)
    assert by_text["seven"]["detail"] == "echo seven >> a.txt"
    assert by_text["mine"]["reason"] == "person"


async def test_a_running_session_is_forked_at_a_turn_with_all_it_needs_to_undo(cli: Cli) -> None:
    before = tree(cli.cwd)
    calls = [{"tools": [create("b.txt", "b\n")]}, {"text": "Done."}]
    async with serving([*calls, {"tools": [bash("touch c.txt; sleep 30")]}]) as server:
        first = await cli.use(server).ask("turn 1")
        session = first.result["sessionId"]
        running = await cli.start(
            "-p", "turn 2", "--allow-all", "--continue", "--output-format=json"
        )
        assert running.stdout is not None
        async for line in running.stdout:
            if b'"tool.execution_start"' in line:
                break
        forked = await cli.run("sessions", "fork", session, "--prompt", "1", "--json")
        running.kill()
        await running.communicate()
    assert forked.code == 0, forked.notes
    copy = json.loads(forked.text)["id"]
    assert len((await cli.run("rewind", copy)).text.splitlines()) == 1
    assert (await cli.run("undo", copy)).code == 0
    assert not (cli.cwd / "b.txt").exists()
    assert {name for name in tree(cli.cwd) if name != "c.txt"} == set(before)


async def test_what_a_command_did_before_the_session_was_killed_can_be_taken_back(cli: Cli) -> None:
    (cli.cwd / "sub").mkdir()
    (cli.cwd / "sub" / "b.txt").write_text("precious")
    before = tree(cli.cwd)
    command = "rm -r sub; echo gone; sleep 30"
    async with serving([{"tools": [bash(command)]}]) as server:
        running = await cli.use(server).start(
            "-p", "go", "--allow-all", "--allow-destructive", "--output-format=json"
        )
        assert running.stdout is not None
        async for line in running.stdout:
            if b'"tool.execution_partial_result"' in line:
                break
        running.kill()
        await running.communicate()
    (cli.cwd / "mine.txt").write_text("made since")
    unsure = await cli.run("undo")
    assert unsure.code == 2
    assert "--file" in unsure.notes
    assert (await cli.run("undo", "--file", "sub")).code == 0
    assert (cli.cwd / "mine.txt").read_text() == "made since"
    (cli.cwd / "mine.txt").unlink()
    assert tree(cli.cwd) == before


async def test_changes_while_a_command_runs_in_the_background_are_left_unless_named(
    cli: Cli,
) -> None:
    background = bash("sleep 0.2; echo late > late.txt; echo ready; sleep 60")
    background["arguments"] |= {"mode": "async", "shellId": "bg"}
    wait = {"name": "read_bash", "arguments": {"shellId": "bg", "delay": 1}}
    cli.env["COPILOT_TASK_WAIT_TIMEOUT_SECONDS"] = "0"
    await work(cli, [create("b.txt", "b\n"), background, wait, bash("touch x.txt")])
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert "left alone late.txt" in undone.text
    assert not (cli.cwd / "b.txt").exists()
    assert not (cli.cwd / "x.txt").exists()
    assert (cli.cwd / "late.txt").exists()
    assert (await cli.run("undo", "--file", "late.txt")).code == 0
    assert not (cli.cwd / "late.txt").exists()


@pytest.mark.parametrize("flag", ["--add-dir={}", "--allow-tool=write({}/)"])
async def test_what_commands_do_in_an_added_directory_is_taken_back_too(
    cli: Cli, flag: str
) -> None:
    other = cli.cwd.with_name("other")
    other.mkdir()
    (other / "kept.txt").write_text("kept\n")
    before = tree(cli.cwd), tree(other)
    command = f"rm {other}/kept.txt; echo x > {other}/made; echo y > a.txt"
    await work(cli, [bash(command)], flags=(flag.format(other), "--allow-destructive"))
    assert not (other / "kept.txt").exists()
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert (tree(cli.cwd), tree(other)) == before


async def test_a_kill_in_an_added_directory_can_be_taken_back_too(cli: Cli) -> None:
    other = cli.cwd.with_name("other")
    other.mkdir()
    (other / "kept.txt").write_text("kept\n")
    before = tree(other)
    command = f"rm {other}/kept.txt; echo gone; sleep 30"
    async with serving([{"tools": [bash(command)]}]) as server:
        flags = ("--allow-all", "--allow-destructive", "--output-format=json")
        running = await cli.use(server).start("-p", "go", *flags, f"--add-dir={other}")
        assert running.stdout is not None
        async for line in running.stdout:
            if b'"tool.execution_partial_result"' in line:
                break
        running.kill()
        await running.communicate()
    assert (await cli.run("undo", "--file", str(other))).code == 0
    assert tree(other) == before


@pytest.mark.parametrize("instead", ["ln -s sub2 sub", "echo file > sub", "ln -s /nowhere sub"])
async def test_a_folder_that_a_command_put_something_else_in_place_of_comes_back(
    cli: Cli, instead: str
) -> None:
    for name in ("sub/deep/b.txt", "sub2/deep/b.txt"):
        (cli.cwd / name).parent.mkdir(parents=True)
        (cli.cwd / name).write_text(name)
    before = tree(cli.cwd)
    await work(cli, [bash(f"rm -r sub; {instead}")], flags=("--allow-destructive",))
    assert not (cli.cwd / "sub").is_dir() or (cli.cwd / "sub").is_symlink()
    undone = await cli.run("undo")
    assert undone.code == 0, undone.text
    assert tree(cli.cwd) == before
    assert (await cli.run("redo")).code == 0
    assert not (cli.cwd / "sub").is_dir() or (cli.cwd / "sub").is_symlink()
    assert (cli.cwd / "sub2" / "deep" / "b.txt").read_text() == "sub2/deep/b.txt"


async def test_a_file_with_two_names_is_taken_back_once(cli: Cli) -> None:
    os.link(cli.cwd / "a.txt", cli.cwd / "same.txt")
    before = tree(cli.cwd)
    await work(cli, [bash("echo changed > a.txt")])
    undone = await cli.run("undo")
    assert undone.code == 0, undone.text
    assert tree(cli.cwd) == before


async def test_an_edit_of_a_file_too_large_for_snapshots_is_taken_back(cli: Cli) -> None:
    large = cli.cwd / "large.txt"
    large.write_bytes(b"first\n" + b"x" * MAX_SIZE)
    edit = {"path": "large.txt", "old_str": "first\n", "new_str": "1\n"}
    await work(cli, [{"name": "edit", "arguments": edit}])
    assert large.stat().st_size == MAX_SIZE + 2
    assert (await cli.run("undo")).code == 0
    assert large.stat().st_size == MAX_SIZE + 6


async def test_undo_in_a_folder_that_was_moved_says_so(cli: Cli) -> None:
    await work(cli, [bash("echo changed > a.txt")])
    moved = cli.cwd.with_name("moved")
    cli.cwd.rename(moved)
    undone = await cli.run("undo", cwd=moved)
    assert undone.code == 2
    assert f"no such file or directory: {cli.cwd}, where the session worked" in undone.notes
    moved.rename(cli.cwd)
    assert (await cli.run("undo")).code == 0
    assert (cli.cwd / "a.txt").read_text() != "changed\n"


async def test_lines_that_an_undo_brings_back_are_of_who_wrote_them(cli: Cli) -> None:
    await work(cli, [edit("a.txt", "two\n", "TWO\n")], [bash("rm a.txt")])
    assert (await cli.run("undo")).code == 0
    told = (await cli.run("blame", "a.txt")).text.splitlines()
    assert [line.split()[0] for line in (told[0], told[2])] == ["before", "before"]
    assert "prompt 1 tool" in told[1]
    assert told[1].endswith("TWO")
