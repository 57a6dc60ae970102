"""Fleets of the installed program: planned, worked on, merged, checked, resumed, landed, undone."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import bash, serving
from conformance import check_lines
from fleetkit import Fleet, edits, read_fleet, script_of, statuses, todo, writes
from gitkit import git, make_repository

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.mark.proves("SUB-17")
async def test_todos_are_done_in_parallel_and_merged_into_one_green_branch(fleet: Fleet) -> None:
    fleet.write("mine.txt", "not committed")
    rules = [writes(name, f"{name}.txt", name) for name in "abc"]
    rules[2]["tools"].insert(0, bash("cat a.txt b.txt"))
    plan = fleet.plan(todo("a"), todo("b"), todo("c", "a", "b"))
    result = await fleet.start(rules, plan, "--check", "test -f base.txt", "--workers", "2")
    assert fleet.cli.outcomes[-1].code == 0
    assert statuses(result) == dict.fromkeys("abc", "merged")
    assert (result["base"], result["verification"]) == (fleet.base, "verified")
    assert [check["passed"] for check in result["checks"]] == [True]
    assert fleet.trailers(result["branch"]) == ["a", "b", "c"]
    assert {fleet.show(result["branch"], f"{name}.txt") for name in "abc"} == set("abc")
    authors = fleet.git("log", "--format=%an <%ae>", result["branch"]).split("\n")
    assert set(authors) == {"Person <person@example.org>"}
    assert all(fleet.git("rev-parse", each["branch"]) == each["commit"] for each in result["todos"])
    # Nobody wrote in the person's checkout, and no worktree is left.
    assert fleet.git("status", "--short") == "?? mine.txt"
    assert fleet.git("rev-parse", "main") == fleet.base
    assert not (fleet.folder / "project.worktrees").exists()
    assert any("without 1 uncommitted change" in note for note in result["notes"])
    assert not fleet.processes()
    prompts = [request.json["messages"] for request in fleet.server.requests]
    own = next(str(each) for each in prompts if "TODO-a-HERE" in str(each))
    assert "Reach the goal" in own
    assert "Part b" in own
    assert "TODO-b-HERE" not in own


async def test_a_conflict_goes_to_an_agent_that_knows_both_intents(fleet: Fleet) -> None:
    rules = [
        {"when": {"last": "This folder holds the merge"}, "tools": [
            bash("printf 'one\\nA and B\\nthree\\n' > base.txt")]},
        edits("a", "base.txt", "two", "A"),
        edits("b", "base.txt", "two", "B"),
    ]  # fmt: skip
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--allow-all")
    assert fleet.cli.outcomes[-1].code == 0, fleet.cli.outcomes[-1].text
    (conflict,) = result["conflicts"]
    assert {conflict["todo"], *conflict["with"]} == {"a", "b"}
    assert (conflict["files"], conflict["resolved"]) == (["base.txt"], True)
    assert conflict["kept"] == {"base.txt": "both"}
    assert fleet.show(result["branch"], "base.txt") == "one\nA and B\nthree\n"
    assert fleet.trailers(result["branch"]) == ["a", "b"]
    assert result["verification"] == "unverified"
    prompt = next(
        str(request.json["messages"])
        for request in fleet.server.requests
        if "This folder holds the merge" in str(request.json["messages"])
    )
    assert "TODO-a-HERE" in prompt
    assert "TODO-b-HERE" in prompt
    assert "Reach the goal" in prompt


async def test_a_conflict_that_stays_is_taken_back_and_its_branch_keeps_the_work(
    fleet: Fleet,
) -> None:
    rules = [
        {"when": {"last": "This folder holds the merge"}, "text": "I cannot."},
        edits("a", "base.txt", "two", "A"),
        edits("b", "base.txt", "two", "B"),
    ]
    plan = fleet.plan(todo("a"), todo("b"), todo("after-a", "a"), todo("after-b", "b"))
    rules += [writes("after-a", "after-a.txt", "x"), writes("after-b", "after-b.txt", "x")]
    result = await fleet.start(rules, plan, "--check", "true")
    assert fleet.cli.outcomes[-1].code == 3
    found = statuses(result)
    lost = "a" if found["a"] == "failed" else "b"
    kept = "b" if lost == "a" else "a"
    assert found == {
        lost: "failed",
        kept: "merged",
        f"after-{lost}": "blocked",
        f"after-{kept}": "merged",
    }
    entry = next(each for each in result["todos"] if each["id"] == lost)
    assert entry["files"] == ["base.txt"]
    assert "unresolved" in entry["reason"]
    assert fleet.show(entry["branch"], "base.txt") == f"one\n{lost.upper()}\nthree\n"
    assert fleet.show(result["branch"], "base.txt") == f"one\n{kept.upper()}\nthree\n"
    assert result["conflicts"][0]["resolved"] is False
    assert result["verification"] == "partly"


async def test_a_red_check_is_repaired_or_the_merge_is_taken_back(fleet: Fleet) -> None:
    mend = {"name": "edit", "arguments": {"path": "good.txt", "old_str": "bad", "new_str": "fine"}}
    rules = [
        {"when": {"last": "(?s)a check fails.*being merged:\\s+<todo id=.good"}, "tools": [mend]},
        {"when": {"last": "a check fails"}, "text": "I cannot."},
        writes("good", "good.txt", "bad"),
        writes("bad", "bad.txt", "bad"),
    ]
    plan = fleet.plan(todo("good"), todo("bad", "good"), todo("next", "bad"))
    check = "! grep -r bad --include=*.txt . || { echo found something; exit 7; }"
    result = await fleet.start(rules, plan, "--check", check)
    assert fleet.cli.outcomes[-1].code == 3
    assert statuses(result) == {"good": "merged", "bad": "failed", "next": "blocked"}
    entry = result["todos"][1]
    assert entry["files"] == ["bad.txt"]
    assert "failed after the merge" in entry["reason"]
    assert entry["checks"][0]["exitCode"] == 7
    assert "found something" in entry["checks"][0]["output"]
    assert fleet.show(entry["branch"], "bad.txt") == "bad"
    assert fleet.show(result["branch"], "good.txt") == "fine"
    assert "bad.txt" not in fleet.git("ls-tree", "--name-only", result["branch"])
    text = (await fleet.cli.run("fleet", "show", result["id"])).text
    assert "found something" in text
    assert f"the work is on {entry['branch']}" in text


async def test_a_check_that_was_red_before_is_not_blamed_on_a_merge(fleet: Fleet) -> None:
    rules = [writes("a", "a.txt", "a"), writes("b", "b.txt", "b")]
    plan = fleet.plan(todo("a"), todo("b", "a"))
    result = await fleet.start(rules, plan, "--check", "test -f b.txt")
    assert fleet.cli.outcomes[-1].code == 0
    assert statuses(result) == {"a": "merged", "b": "merged"}
    assert any("fails at" in note for note in result["notes"])


async def test_a_worker_that_fails_is_tried_again_and_then_named(fleet: Fleet) -> None:
    failing = {"error": {"status": 400, "message": "no"}}
    rules = [
        {"when": {"last": "TODO-a-HERE"}, **failing},
        writes("b", "b.txt", "b", repeat=1),
    ]
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b"), todo("c", "a")))
    assert fleet.cli.outcomes[-1].code == 3
    assert statuses(result) == {"a": "failed", "b": "merged", "c": "blocked"}
    assert [each["attempts"] for each in result["todos"]] == [2, 1, 0]
    assert result["todos"][2]["reason"] == "It depends on a."


async def test_a_planning_run_writes_the_todos_with_sql(fleet: Fleet) -> None:
    query = (
        "INSERT INTO todos (id, title, description) VALUES ('a', 'Part a', 'TODO-a-HERE'), "
        "('b', 'Part b', 'TODO-b-HERE'); INSERT INTO todo_deps VALUES ('b', 'a')"
    )
    rules = [
        {"when": {"last": "Split the goal into todos"}, "tools": [
            {"name": "sql", "arguments": {"description": "plan", "query": query}}]},
        writes("a", "a.txt", "a"),
        writes("b", "b.txt", "b"),
    ]  # fmt: skip
    outcome = await fleet.run(rules, "--json", "Make it better")
    result = read_fleet(outcome)
    assert (outcome.code, statuses(result)) == (0, {"a": "merged", "b": "merged"})
    assert fleet.trailers(result["branch"]) == ["a", "b"]
    assert "Make it better" in str(fleet.server.requests[0].json["messages"])


async def test_a_killed_coordinator_takes_its_workers_along_and_resumes(fleet: Fleet) -> None:
    rules = [
        writes("a", "a.txt", "a"),
        {"when": {"last": "TODO-b-HERE"}, "tools": [bash("sleep 60")], "repeat": 1},
        writes("b", "b.txt", "b"),
    ]
    plan = fleet.plan(todo("a"), todo("b"), todo("c", "b"))
    rules.append(writes("c", "c.txt", "c"))
    async with serving(script_of(rules)) as server:
        fleet.cli.use(server)
        process = await fleet.cli.start(
            "fleet", "Goal", "--plan", plan, "--allow-all", "--output-format", "json"
        )
        assert process.stdout is not None
        seen: list[dict[str, Any]] = []
        async with asyncio.timeout(50):
            while not (seen and seen[-1]["type"] == "fleet.merged"):
                seen.append(json.loads(await process.stdout.readline())["data"]["event"])
        process.kill()
        await process.wait()
        await fleet.gone()
        (name,) = fleet.ids()
        again = await fleet.cli.run("fleet", "resume", name, "--json")
        assert again.code == 0, again.text + again.notes
        result = read_fleet(again)
        assert statuses(result) == dict.fromkeys("abc", "merged")
        assert fleet.trailers(result["branch"]) == ["a", "b", "c"]
        requests = len(server.requests)
        once_more = await fleet.cli.run("fleet", "resume", name, "--json")
        assert (once_more.code, len(server.requests)) == (0, requests)
        assert read_fleet(once_more)["tip"] == result["tip"]
    assert not fleet.processes()


async def test_landing_moves_a_clean_branch_and_undo_goes_around_the_persons_work(
    fleet: Fleet,
) -> None:
    rules = [writes(name, f"{name}.txt", name) for name in "ab"]
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--land")
    assert result["landed"] is True
    assert fleet.git("rev-parse", "main") == result["tip"]
    assert (fleet.cli.cwd / "a.txt").read_text() == "a"
    fleet.write("own.txt", "mine")
    own = fleet.commit("own work")
    fleet.write("base.txt", "changed, not committed\n")
    undone = await fleet.cli.run("fleet", "undo", result["id"])
    assert undone.code == 0, undone.notes
    assert fleet.git("merge-base", "--is-ancestor", own, "main") == ""
    assert sorted(fleet.git("ls-files").split()) == ["base.txt", "own.txt"]
    assert fleet.git("status", "--short") == "M base.txt"
    assert fleet.git("branch", "--list", "trimtab/*") == ""
    again = await fleet.cli.run("fleet", "undo", result["id"])
    assert (again.code, "was undone already" in again.notes) == (2, True)
    resumed = await fleet.cli.run("fleet", "resume", result["id"])
    assert (resumed.code, "was undone" in resumed.notes) == (2, True)


async def test_undo_right_after_landing_goes_back_and_keeps_branches_that_moved(
    fleet: Fleet,
) -> None:
    rules = [writes(name, f"{name}.txt", name) for name in "ab"]
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--land")
    fleet.git("branch", "-f", result["todos"][0]["branch"], fleet.base)
    undone = json.loads((await fleet.cli.run("fleet", "undo", result["id"], "--json")).text)
    assert fleet.git("rev-parse", "main") == fleet.base
    assert not (fleet.cli.cwd / "a.txt").exists()
    assert [line.partition(":")[0] for line in undone["kept"]] == [result["todos"][0]["branch"]]


async def test_a_dirty_checkout_is_not_landed_on(fleet: Fleet) -> None:
    fleet.write("base.txt", "changed\n")
    rules = [writes("a", "a.txt", "a")]
    result = await fleet.start(rules, fleet.plan(todo("a")), "--land")
    assert fleet.cli.outcomes[-1].code == 3
    assert (result["landed"], statuses(result)) == (False, {"a": "merged"})
    assert "uncommitted changes" in result["reason"]
    assert fleet.git("rev-parse", "main") == fleet.base
    assert fleet.git("status", "--short") == "M base.txt"


async def test_commits_of_a_worker_are_kept_below_the_one_that_names_the_todo(
    fleet: Fleet,
) -> None:
    command = "echo 1 > one.txt && git add -A && git commit -qm first && git checkout -qb elsewhere"
    rules = [{"when": {"last": "TODO-a-HERE"}, "tools": [bash(command)]}]
    fleet.git("checkout", "-q", "--detach")
    result = await fleet.start(rules, fleet.plan(todo("a")), "--allow-all")
    assert fleet.cli.outcomes[-1].code == 0
    assert fleet.trailers(result["branch"]) == ["a"]
    assert fleet.git("log", "--format=%s", f"{fleet.base}..{result['branch']}") == "first"


async def test_a_stopped_fleet_is_listed_followed_and_resumed(fleet: Fleet) -> None:
    rules = [
        {"when": {"last": "TODO-a-HERE"}, "tools": [bash("sleep 60")], "repeat": 1},
        writes("a", "a.txt", "a"),
    ]
    async with serving(script_of(rules)) as server:
        fleet.cli.use(server)
        plan = fleet.plan(todo("a"))
        process = await fleet.cli.start("fleet", "The goal", "--plan", plan, "--allow-all")
        async with asyncio.timeout(50):
            await server.answered.wait()
        (name,) = fleet.ids()
        listed = json.loads((await fleet.cli.run("fleet", "list", "--json")).text)
        assert [(row["id"], row["status"]) for row in listed["fleets"]] == [(name, "running")]
        busy = await fleet.cli.run("fleet", "resume", name)
        assert (busy.code, "is run by process" in busy.notes) == (2, True)
        refused = await fleet.cli.run("fleet", "undo", name)
        assert (refused.code, "trimtab fleet stop" in refused.notes) == (2, True)
        stopped = await fleet.cli.run("fleet", "stop", name)
        assert stopped.code == 0, stopped.notes
        assert await process.wait() == 3
        await fleet.gone()
        twice = await fleet.cli.run("fleet", "stop", name)
        assert (twice.code, "is not running" in twice.notes) == (1, True)
        resumed = await fleet.cli.run("fleet", "resume", name, "--json")
        assert (resumed.code, statuses(read_fleet(resumed))) == (0, {"a": "merged"})
    tail = await fleet.cli.run("fleet", "tail", name[:15], "--follow")
    assert "stopped: It was stopped by `trimtab fleet stop`." in tail.text
    assert tail.text.endswith("finished\n")


async def test_one_budget_holds_for_all_workers_and_gives_exit_code_5(fleet: Fleet) -> None:
    usage = {"input": 10_000, "output": 10}
    working = {"tools": [bash("date +%N >> $(basename $PWD).txt")], "usage": usage}
    plan = fleet.plan(*(todo(name) for name in "abcd"))
    outcome = await fleet.run(
        {"replies": [], "otherwise": working},
        *("Goal", "--plan", plan, "--json", "--allow-all"),
        *("--workers", "2", "--max-tokens", "130000"),
    )
    result, spent = read_fleet(outcome), fleet.server.usage
    assert outcome.code == 5, outcome.notes
    assert result["usage"]["tokens"] == spent.input_tokens + spent.output_tokens
    assert 100_000 < result["usage"]["tokens"] <= 130_000
    assert set(statuses(result).values()) == {"pending"}
    async with serving(script_of([])) as server:
        args = ("fleet", "resume", result["id"], "--json", "--max-tokens", "900000")
        resumed = await fleet.cli.use(server).run(*args)
    assert resumed.code == 0, resumed.notes
    assert read_fleet(resumed)["usage"]["tokens"] > result["usage"]["tokens"]


@pytest.mark.parametrize("flags", [["--fleet"], ["--plan", "--mode", "autopilot", "--fleet"]])
async def test_a_prompt_with_fleet_plans_and_carries_out(fleet: Fleet, flags: list[str]) -> None:
    query = "INSERT INTO todos (id, title, description) VALUES ('a', 'Part a', 'TODO-a-HERE')"
    call = {"name": "sql", "arguments": {"description": "plan", "query": query}}
    rules = [
        {"when": {"last": "Split the goal into todos"}, "tools": [call]},
        writes("a", "a.txt", "a"),
    ]
    script = script_of(rules)
    if "autopilot" in flags:
        done = {"name": "task_complete", "arguments": {"summary": "Done."}}
        script["replies"].append({"when": {"last": "inserted"}, "text": "Planned."})
        script["otherwise"] = {"tools": [done], "repeat": "forever"}
    async with serving(script) as server:
        outcome = await fleet.cli.use(server).ask("Improve it", *flags, "--check", "true")
    check_lines(outcome.out.splitlines())
    assert outcome.result["fleet"]["verification"] == "verified"
    assert statuses(outcome.result["fleet"]) == {"a": "merged"}


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--plan", "none.json"], 2, "cannot be read"),
        (["The goal", "--workers", "0", "--plan", "{plan}"], 2, "--workers needs a number from 1"),
        (["The goal", "--workers", "x"], 2, "--workers needs a whole number"),
        (["The goal", "--plan"], 2, "--plan needs a value"),
        (["The goal", "--check", " ", "--plan", "{plan}"], 2, "--check has no command"),
        (["The goal", "--resume", "x", "--plan", "{plan}"], 2, "--resume cannot be used with a fleet"),
        (["The goal", "--nonsense"], 2, "Unknown option --nonsense"),
        (["start"], 2, "The goal is missing"),
        (["lsit"], 2, "did you mean `trimtab fleet list`"),
        (["show", "nothing"], 2, "There is no fleet 'nothing'"),
        (["resume"], 2, "ID is missing"),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_told_in_one_sentence(
    fleet: Fleet, args: list[str], code: int, said: str
) -> None:
    plan = fleet.plan(todo("a"))
    outcome = await fleet.cli.run("fleet", *(word.replace("{plan}", plan) for word in args))
    assert (outcome.code, outcome.out) == (code, b"")
    assert said in outcome.notes
    assert outcome.notes.count("\n") == 1
    assert not (fleet.cli.home / "fleets").exists()


async def test_folders_in_which_no_fleet_can_work_are_told(fleet: Fleet) -> None:
    plan = fleet.plan(todo("a"))
    empty, bare = fleet.folder / "empty", fleet.folder / "bare"
    for folder in (empty, bare):
        folder.mkdir()
    said = []
    for folder in (fleet.folder, empty, bare):
        if folder == bare:
            git(folder, "init", "-q", "--bare")
        if folder == empty:
            git(folder, "init", "-q")
        outcome = await fleet.cli.run("fleet", "The goal", "--plan", plan, cwd=folder)
        assert (outcome.code, outcome.notes.count("\n")) == (2, 1)
        said.append(outcome.notes)
    assert "is not in a git repository" in said[0]
    assert "has no commit to start from; commit first." in said[1]
    assert "is a bare repository" in said[2]


async def test_submodules_stay_as_they_are(fleet: Fleet) -> None:
    other = fleet.folder / "other"
    other.mkdir()
    make_repository(other)
    (other / "x.txt").write_text("x")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "x")
    fleet.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    fleet.commit("submodule")
    before = fleet.git("rev-parse", "HEAD:sub")
    result = await fleet.start([writes("a", "a.txt", "a")], fleet.plan(todo("a")))
    assert fleet.cli.outcomes[-1].code == 0
    assert fleet.git("rev-parse", f"{result['branch']}:sub") == before
    assert any("submodules" in note for note in result["notes"])
    inside = await fleet.cli.run(
        "fleet", "G", "--plan", fleet.plan(todo("a")), cwd=fleet.cli.cwd / "sub"
    )
    assert (inside.code, "is a submodule" in inside.notes) == (2, True)


async def test_a_fleet_that_was_turned_off_is_refused(fleet: Fleet) -> None:
    args = ("--plan", fleet.plan(todo("a")), "--feature", "FLEET_COMMAND=off")
    outcome = await fleet.cli.run("fleet", "The goal", *args)
    assert (outcome.code, "FLEET_COMMAND off" in outcome.notes) == (2, True)


async def test_an_edit_against_a_deletion_is_decided_by_somebody_or_not_merged(
    fleet: Fleet,
) -> None:
    merged = "git log -1 --format=%B $(git for-each-ref --format='%(refname)' --sort=-refname 'refs/heads/trimtab/**/merged' | head -1) | grep -q 'Todo: a'"
    rules = [
        {"when": {"last": "This folder holds the merge"}, "text": "I cannot decide."},
        edits("a", "base.txt", "two", "A"),
        {
            "when": {"last": "TODO-b-HERE"},
            "tools": [bash(f"until {merged}; do sleep 0.02; done; rm base.txt")],
        },
    ]
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--allow-all")
    assert fleet.cli.outcomes[-1].code == 3
    assert statuses(result) == {"a": "merged", "b": "failed"}
    assert result["conflicts"][0]["files"] == ["base.txt"]
    rules[0] = {
        "when": {"last": "This folder holds the merge"},
        "tools": [bash("git rm -qf base.txt")],
    }
    again = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--allow-all")
    assert fleet.cli.outcomes[-1].code == 0
    assert again["conflicts"][0]["kept"] == {"base.txt": "todo"}


async def test_a_worker_without_permission_writes_in_its_own_folder_only(fleet: Fleet) -> None:
    outside = str(fleet.cli.cwd / "outside.txt")
    rules = [writes("a", outside, "x"), writes("b", "b.txt", "b")]
    plan = fleet.plan(todo("a"), todo("b"))
    result = await fleet.start(rules, plan, "--disallow-temp-dir")  # the tests' folder is one
    assert fleet.cli.outcomes[-1].code == 3
    assert statuses(result) == {"a": "failed", "b": "merged"}
    assert result["todos"][0]["attempts"] == 1, "a denial was tried again"
    assert "permission" in result["todos"][0]["reason"]
    assert fleet.git("status", "--short") == ""
    usage = json.loads(fleet.cli.outcomes[-1].text)["usage"]
    assert usage["modelCalls"] == len(fleet.server.requests)


async def test_work_inside_a_repository_of_its_own_is_kept_in_its_folder(fleet: Fleet) -> None:
    identity = "-c user.name=x -c user.email=x"
    command = (
        f"git init -q inner && cd inner && echo x > x && git add x && git {identity} commit -qm x"
    )
    rules = [{"when": {"last": "TODO-a-HERE"}, "tools": [bash(command)]}]
    result = await fleet.start(rules, fleet.plan(todo("a")), "--allow-all")
    assert statuses(result) == {"a": "failed"}
    assert "inner is a repository of its own" in result["todos"][0]["reason"]
    (kept,) = (fleet.folder / "project.worktrees").glob("*/todo/a/inner/x")
    assert kept.read_text() == "x\n"


async def test_a_repository_that_is_gone_is_told(fleet: Fleet) -> None:
    failing = [{"when": {"last": "TODO-a-HERE"}, "tools": [bash("sleep 60")]}]
    async with serving(script_of(failing)) as server:
        args = ("fleet", "G", "--plan", fleet.plan(todo("a")), "--deadline", "1s", "--allow-all")
        stopped = await fleet.cli.use(server).run(*args)
    assert (stopped.code, "Its time is up" in stopped.text) == (3, True)
    (fleet.cli.cwd / ".git").rename(fleet.folder / "moved")
    outcome = await fleet.cli.run("fleet", "resume", fleet.ids()[0])
    assert outcome.code == 1
    assert "git failed" in outcome.text
    assert "Internal" not in outcome.notes


async def test_names_of_files_that_are_not_utf_8_do_no_harm(fleet: Fleet) -> None:
    odd = os.fsencode(fleet.cli.cwd) + b"/odd-\xff.txt"
    with open(odd, "w") as file:
        file.write("one\ntwo\nthree\n")
    fleet.commit("odd")
    rules = [
        {"when": {"last": "This folder holds the merge"}, "text": "I cannot."},
        {"when": {"last": "TODO-a-HERE"}, "tools": [bash("sed -i s/two/A/ odd*")]},
        {"when": {"last": "TODO-b-HERE"}, "tools": [bash("sed -i s/two/B/ odd*")]},
    ]
    result = await fleet.start(rules, fleet.plan(todo("a"), todo("b")), "--allow-all")
    assert fleet.cli.outcomes[-1].code == 3
    assert result["conflicts"][0]["files"] == ["odd-\udcff.txt"]
    shown = await fleet.cli.run("fleet", "show", result["id"])
    assert (shown.code, "conflict of" in shown.text) == (0, True)
