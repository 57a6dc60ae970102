"""Permissions in running sessions: answers, scopes, refusals, what the model is told."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import bash
from conformance import check_lines
from trimtab.contracts.assessment import one_command
from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.permissions.kinds import show_request
from trimtab.testing.playing import Played, play, texts

NO_RULES = PermissionOptions()


class Person:
    """Answers every question the same way and keeps the questions."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Any] = []

    async def __call__(self, request_id: str, request: Any) -> Answer:
        self.requests.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


async def run(folder: Path, *commands: str, **options: Any) -> Played:
    folder.mkdir(exist_ok=True)
    replies = [{"tools": [bash(command)]} for command in commands]
    played = await play([*replies, "done"], "go", cwd=str(folder), **options)
    check_lines(played.lines)
    return played


def outcomes(played: Played) -> list[str]:
    return [data.result["kind"] for data in played.of("permission.completed")]


async def test_commands_that_only_read_run_without_a_question(tmp_path: Path) -> None:
    played = await run(tmp_path, "ls -la; cat x 2>/dev/null || true", permissions=NO_RULES)
    assert played.of("permission.requested") == []
    assert played.of("tool.execution_complete")[0].success


@pytest.mark.proves("PERM-12", "PERM-13")
async def test_a_question_carries_what_its_kind_needs_and_the_rule_it_would_make(
    tmp_path: Path,
) -> None:
    person = Person(Answer(kind="approve-once"))
    script: list[Any] = [
        {"tools": [bash("touch y; echo https://x.test")]},
        {"tools": [{"name": "create", "arguments": {"path": "z", "file_text": "a"}}]},
        {"tools": [{"name": "view", "arguments": {"path": "/etc/hostname"}}]},
        {"tools": [{"name": "web_fetch", "arguments": {"url": "http://127.0.0.1:1/x"}}]},
        "done",
    ]
    played = await play(script, "go", cwd=str(tmp_path), permissions=NO_RULES, ask=person)
    check_lines(played.lines)
    shell, write, read, url = person.requests
    assert [one["kind"] for one in person.requests] == ["shell", "write", "read", "url"]
    assert url["url"] == "http://127.0.0.1:1/x"
    shown = [show_request(one) for one in (*person.requests, {"kind": "new", "toolName": "x"})]
    assert [one.question for one in shown] == [
        "Run this command?",
        f"Write {tmp_path / 'z'}?",
        "Read /etc/hostname?",
        "Open http://127.0.0.1:1/x?",
        "Use the tool x?",
    ]
    assert [one.form for one in shown] == ["command", "diff", "text", "text", "text"]
    assert shell["commands"] == [
        {"identifier": "touch", "readOnly": False},
        {"identifier": "echo", "readOnly": True},
    ]
    assert shell["possibleUrls"] == [{"url": "https://x.test"}]
    assert shell["suggestedRules"] == ["shell(touch)"]
    assert "every `touch` command" in shell["suggestedRulesCover"]
    assert shell["digest"].startswith("sha256:")
    assert write["fileName"] == str(tmp_path / "z")
    assert write["newFileContents"] == "a"
    assert read["path"] == "/etc/hostname"
    assert outcomes(played) == ["approved"] * 4
    assert (tmp_path / "y").exists()


@pytest.mark.proves("PERM-13")
async def test_an_approval_for_the_session_covers_the_same_program_only(tmp_path: Path) -> None:
    person = Person(Answer(kind="approve-for-session"), Answer(kind="reject"))
    played = await run(
        tmp_path, "touch a", "touch b && ls", "mkdir c", permissions=NO_RULES, ask=person
    )
    assert len(person.requests) == 2
    assert outcomes(played) == ["approved-for-session", "denied-interactively-by-user"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


async def test_an_approval_for_once_is_for_once(tmp_path: Path) -> None:
    person = Person(Answer(kind="approve-once"))
    await run(tmp_path, "touch a", "touch a", permissions=NO_RULES, ask=person)
    assert len(person.requests) == 2
    assert person.requests[0]["digest"] == person.requests[1]["digest"]


async def test_an_approval_for_the_location_is_kept_as_copilot_keeps_it(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    gone = {"locations": {"/gone/away": {"tool_approvals": []}}, "other": 1}
    home.mkdir()
    (home / "permissions-config.json").write_text(json.dumps(gone))
    person = Person(Answer(kind="approve-for-location"))
    played = await run(project, "touch a", permissions=NO_RULES, ask=person, home=str(home))
    assert outcomes(played) == ["approved-for-location"]
    kept = json.loads((home / "permissions-config.json").read_text())
    assert kept == {
        "locations": {
            str(project): {
                "tool_approvals": [{"kind": "commands", "commandIdentifiers": ["touch"]}]
            }
        },
        "other": 1,
    }
    again = await run(project, "touch b", permissions=NO_RULES, home=str(home))
    assert again.of("permission.requested") == []
    elsewhere = await run(tmp_path / "x", "touch b", permissions=NO_RULES, home=str(home))
    assert outcomes(elsewhere) == ["denied-no-approval-rule-and-could-not-request-from-user"]


async def test_a_rejection_carries_the_persons_words_to_the_model(tmp_path: Path) -> None:
    person = Person(Answer(kind="reject", feedback="use the Makefile"))
    played = await run(tmp_path, "touch a", permissions=NO_RULES, ask=person)
    completed = played.of("permission.completed")[0]
    assert completed.result["feedback"] == "use the Makefile"
    assert "use the Makefile" in str(played.of("tool.execution_complete")[0])
    assert not (tmp_path / "a").exists()


@pytest.mark.proves("PERM-04")
async def test_a_denied_command_is_refused_with_its_rule_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    allowed = PermissionOptions(
        allow_all_tools=True, allow_all_paths=True, allow_all_urls=True, deny=("shell(touch)",)
    )
    played = await run(tmp_path, "ls && sh -c 'touch a'", permissions=allowed)
    result = played.of("permission.completed")[0].result
    assert result == {"kind": "denied-by-rules", "rules": [{"kind": "shell", "argument": "touch"}]}
    assert any("The rule shell(touch) forbids touch" in text for text in texts(played.requests))
    assert os.listdir(tmp_path) == []


async def test_a_tool_can_be_denied_by_name(tmp_path: Path) -> None:
    denied = PermissionOptions(allow_all_tools=True, deny=("create",))
    call = {"name": "create", "arguments": {"path": "z", "file_text": "a"}}
    played = await play([{"tools": [call]}, "done"], "go", cwd=str(tmp_path), permissions=denied)
    assert outcomes(played) == ["denied-by-rules"]
    assert os.listdir(tmp_path) == []


BYPASSES = [
    "touch x", "echo a > x", "sh -c 'touch x'", "env touch x", "$(echo touch) x", "eval 'touch x'",
    "python3 -c 'open(\"x\",\"w\")'", "find . -fprint x", "sort -o x /dev/null", "sed -n 'w x' /etc/hostname",
    "awk 'BEGIN{print > \"x\"}'", "git init -q x", "cp /etc/hostname x", "tee x < /dev/null", "bash <<< 'touch x'",
    "y=touch; $y x", "f() { touch x; }; f", "`echo touch` x", "cat <(touch x)", "uniq /etc/hostname x",
    "xargs touch <<< x", "git log --output=x", "printf -v 'a[$(touch x)]' 1", "mkdir x", "ln -s a x", "dd of=x count=0",
]  # fmt: skip


@pytest.mark.parametrize("command", BYPASSES)
async def test_in_plan_mode_no_command_changes_anything_whatever_is_allowed(
    tmp_path: Path, command: str
) -> None:
    played = await run(tmp_path, command, mode="plan")
    assert os.listdir(tmp_path) == []
    assert "Plan mode" in str(played.of("tool.execution_complete")[0])


async def test_in_plan_mode_commands_that_only_read_run(tmp_path: Path) -> None:
    played = await run(tmp_path, "ls -la | wc -l; git status 2>/dev/null || true", mode="plan")
    assert played.of("tool.execution_complete")[0].success


@pytest.mark.parametrize("command", BYPASSES)
async def test_without_rules_nothing_changes_when_nobody_can_be_asked(
    tmp_path: Path, command: str
) -> None:
    played = await run(tmp_path, command, permissions=NO_RULES)
    assert os.listdir(tmp_path) == []
    assert outcomes(played) == ["denied-no-approval-rule-and-could-not-request-from-user"]


async def test_what_cannot_be_undone_is_denied_with_the_reason_when_nobody_can_be_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "build").mkdir()
    played = await run(tmp_path, "find . -delete")
    assert (tmp_path / "build").exists()
    assert any(
        "It cannot be undone: find deletes everything" in text for text in texts(played.requests)
    )
    free = PermissionOptions(allow_all_tools=True, allow_all_paths=True, allow_destructive=True)
    await run(tmp_path, "rm -rf build", permissions=free)
    assert not (tmp_path / "build").exists()


async def test_tools_never_write_into_the_agents_home_or_the_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    call = {"name": "create", "arguments": {"path": str(home / "settings.json"), "file_text": "{}"}}
    script = [{"tools": [call]}, {"tools": [bash(f"echo x > {home}/hooks.json")]}, "done"]
    played = await play(script, "go", cwd=str(tmp_path), home=str(home))
    check_lines(played.lines)
    assert outcomes(played) == ["denied-by-rules", "denied-by-rules"]
    assert sorted(os.listdir(home)) == ["session-state"]


async def test_parallel_questions_are_answered_each_for_itself(tmp_path: Path) -> None:
    async def ask(request_id: str, request: Any) -> Answer:
        await asyncio.sleep(0)
        approve = request["fullCommandText"] == "touch a"
        return Answer(kind="approve-once" if approve else "user-not-available")

    script = [{"tools": [bash("touch a"), bash("touch b")]}, "done"]
    played = await play(script, "go", cwd=str(tmp_path), permissions=NO_RULES, ask=ask)
    check_lines(played.lines)
    assert os.listdir(tmp_path) == ["a"]


SHOWN = {"pattern": "words", "output_mode": "content"}


@pytest.mark.parametrize("rule", ["read(sub/secret)", "read({cwd}/sub/secret)", "read(sub)"])
async def test_what_a_rule_keeps_from_being_read_is_found_by_no_tool(
    tmp_path: Path, rule: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "secret").write_text("hidden words\n")
    (tmp_path / "open").write_text("open words\n")
    searches: list[dict[str, Any]] = [{}, {"glob": "**/secret"}, {"paths": ["./", str(tmp_path)]}]
    calls = [
        *({"name": "grep", "arguments": {**SHOWN, **arguments}} for arguments in searches),
        {"name": "view", "arguments": {"path": "sub/secret"}},
        bash("cat sub/secret"),
        bash("cat sub/s*t"),
    ]
    script = [*({"tools": [call]} for call in calls), "done"]
    rules = PermissionOptions(allow_all_tools=True, deny=(rule.format(cwd=tmp_path),))
    played = await play(script, "go", cwd=str(tmp_path), permissions=rules)
    told = "\n".join(texts(played.requests))
    assert "open:open words" in told
    assert "hidden words" not in told


@pytest.mark.proves("PERM-17")
async def test_a_program_brings_its_own_assessor(tmp_path: Path) -> None:
    person = Person(Answer(kind="reject"))
    played = await run(tmp_path, "ls -la", permissions=NO_RULES, ask=person, assess=one_command)
    assert not played.of("tool.execution_complete")[0].success
    (request,) = person.requests
    assert request["commands"] == [{"identifier": "ls", "readOnly": False}]
    assert request["canOfferSessionApproval"] is False


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("veiw", "did you mean view"),
        ("store_memory(x)", "write store_memory"),
        ("task(x)", "write task"),
    ],
)
async def test_a_rule_for_a_tool_that_would_cover_nothing_ends_the_run(
    rule: str, advice: str
) -> None:
    played = await play(["x"], "go", permissions=PermissionOptions(deny=(rule,)))
    (error,) = played.of("session.error")
    assert advice in error.message
    assert not played.requests
