"""Folders of agents that a person opened for changes."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.agent_folders import find_agent_folder, name_agent_folder, opens
from trimtab.permissions.approvals import describe_cover, generalise, offer_rules, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide import decide
from trimtab.permissions.read_folders import freeze
from trimtab.permissions.rules import parse_rules
from trimtab.permissions.sandbox_bypass import runs_outside


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    for name in ("skills/a", "hooks", "worktrees/w"):
        (tmp_path / ".claude" / name).mkdir(parents=True)
    (tmp_path / ".claude/notes.md").write_text("notes")
    return msgspec.structs.replace(POLICY, cwd=str(tmp_path), roots=(str(tmp_path),))


def allow(policy: Policy, *texts: str) -> Policy:
    rules = freeze(parse_rules([text.replace("~W", policy.cwd) for text in texts]))
    return msgspec.structs.replace(policy, allow=rules)


def judge(command: str, policy: Policy) -> str:
    return decide(Access(kind="shell", target=command), policy).verdict


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p .claude/skills/new",
        "touch .claude/skills/a/SKILL.md",
        "rm -f .claude/.DS_Store",
        "mv .claude/notes.md .claude/old.md",
    ],
)
def test_the_answer_about_one_file_of_an_agent_covers_the_next(
    policy: Policy, command: str
) -> None:
    plain = allow(policy, "write")
    decision = decide(Access(kind="shell", target=command), plain)
    assert decision.verdict == "ask", "protected even under a rule for writing"
    assert "is protected" in decision.reason
    analysis = read_script(command, plain)
    approval = generalise(Access(kind="shell", target=command), analysis, plain)
    assert approval == {"kind": "write", "writesFolders": [f"{policy.cwd}/.claude"]}
    rules = to_rules(approval, "location")
    assert [str(rule) for rule in rules] == [f"write({policy.cwd}/.claude/)"]
    opened = msgspec.structs.replace(policy, allow=rules)
    assert judge(command, opened) == "allow"
    assert judge("touch .claude/another.md", opened) == "allow"
    assert judge("touch elsewhere.md", opened) == "ask"


def test_files_beside_the_folder_need_the_rule_for_writing_as_well(policy: Policy) -> None:
    command = "cp README.md .claude/notes.md"
    approval = generalise(
        Access(kind="shell", target=command), read_script(command, policy), policy
    )
    assert approval is not None
    rules = to_rules(approval, "location")
    assert [str(rule) for rule in rules] == ["write", f"write({policy.cwd}/.claude/)"]
    assert judge(command, msgspec.structs.replace(policy, allow=rules)) == "allow"


def test_a_program_given_a_file_of_an_agent_needs_a_rule_of_its_own(policy: Policy) -> None:
    command = "frob .claude/notes.md"
    approval = generalise(
        Access(kind="shell", target=command), read_script(command, policy), policy
    )
    assert approval is not None
    rules = to_rules(approval, "location")
    assert [str(rule) for rule in rules] == ["shell(frob)", f"write({policy.cwd}/.claude/)"]
    assert judge(command, msgspec.structs.replace(policy, allow=rules)) == "allow"
    assert judge(command, msgspec.structs.replace(policy, allow=rules[:1])) == "ask"
    assert judge(command, msgspec.structs.replace(policy, allow=rules[1:])) == "ask"


def test_tools_write_where_the_answer_opened_the_folder(policy: Policy) -> None:
    access = Access(kind="write", target=f"{policy.cwd}/.claude/skills/b.md")
    assert decide(access, allow(policy, "write")).verdict == "ask"
    approval = generalise(access, None, policy)
    assert approval == {"kind": "write", "writesFolders": [f"{policy.cwd}/.claude"]}
    opened = msgspec.structs.replace(policy, allow=to_rules(approval, "session"))
    assert decide(access, opened).verdict == "allow"
    outside = Access(kind="write", target=f"{policy.cwd}/src/a.py")
    assert decide(outside, opened).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [
        ".claude",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/Settings.JSON",
        ".claude/settings.json.bak",
        ".claude/hooks/pre.sh",
        ".claude/hooks.json",
        ".claude/plugins/a",
        ".claude/.mcp.json",
        ".claude/mcp.json",
        ".claude/.lsp.json",
        ".claude/tools/a.py",
        ".claude/skills/.git/hooks/pre-commit",
        ".claude/skills/.vscode/tasks.json",
        ".claude/../.git/config",
        ".claude/../.vscode/tasks.json",
        ".codex/a.md",
        ".git/config",
        ".claude-other/.mcp.json",
        "linked/config",
    ],
)
def test_what_starts_programs_or_grants_rights_stays_protected(policy: Policy, path: str) -> None:
    Path(policy.cwd, "linked").symlink_to(".git")
    opened = allow(policy, "write", "write(~W/.claude/)")
    access = Access(kind="write", target=f"{policy.cwd}/{path}")
    assert decide(access, opened).verdict == "ask"
    assert find_agent_folder(access.target, policy) == (
        f"{policy.cwd}/.codex" if path == ".codex/a.md" else ""
    )


def test_a_second_name_of_a_protected_file_stays_protected(policy: Policy) -> None:
    settings = Path(policy.cwd, ".claude/settings.json")
    settings.write_text("{}")
    os.link(settings, Path(policy.cwd, ".claude/innocent.md"))
    opened = allow(policy, "write", "write(~W/.claude/)")
    access = Access(kind="write", target=f"{policy.cwd}/.claude/innocent.md")
    assert decide(access, opened).verdict == "ask"


def test_a_link_in_the_place_of_the_folder_opens_nothing(policy: Policy, tmp_path: Path) -> None:
    opened = allow(policy, "write", "write(~W/.claude/)")
    access = Access(kind="write", target=f"{policy.cwd}/.claude/notes.md")
    assert decide(access, opened).verdict == "allow"
    (tmp_path / ".claude").rename(tmp_path / "moved")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".claude").symlink_to(".git")
    assert decide(access, opened).verdict == "ask"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("write(/p/.claude/)", "/p/.claude"),
        ("write(/p/.github/../.cursor/)", "/p/.cursor"),
        ("write(/p/.claude)", ""),
        ("write(.claude/)", ""),
        ("write(/p/.git/)", ""),
        ("write(/p/)", ""),
        ("read(/p/.claude/)", ""),
        ("write", ""),
    ],
)
def test_only_a_rule_that_names_the_folder_in_full_opens_it(text: str, folder: str) -> None:
    (rule,) = parse_rules([text])
    assert name_agent_folder(rule) == folder


def test_an_agents_folder_elsewhere_is_not_offered(policy: Policy) -> None:
    assert find_agent_folder("/home/someone/.claude/a.md", policy) == ""
    assert find_agent_folder(f"{policy.cwd}/src/a.md", policy) == ""
    assert opens(f"{policy.cwd}/.claude", f"{policy.cwd}/.claude/a.md")
    assert not opens(f"{policy.cwd}/.claude", f"{policy.cwd}/.claudette/a.md")


def test_a_command_for_an_opened_folder_runs_outside_the_sandbox(policy: Policy) -> None:
    confined = msgspec.structs.replace(policy, confined=True)
    access = Access(kind="shell", target="mkdir .claude/skills/b")
    analysis = read_script(access.target, confined)
    approval = generalise(access, analysis, confined)
    assert approval == {"kind": "write", "writesFolders": [f"{policy.cwd}/.claude"]}
    opened = msgspec.structs.replace(confined, allow=to_rules(approval, "session"))
    assert runs_outside(access, opened)
    assert not runs_outside(access, confined)
    for other in ("mkdir b", "make", "touch .claude/settings.json", "mkdir .claude/x && make"):
        assert not runs_outside(Access(kind="shell", target=other), opened)


def test_a_person_may_write_the_rule_and_is_told_what_it_covers() -> None:
    _, approval = offer_rules({}, "write(/p/.claude/)")
    assert approval == {"kind": "write", "writesFolders": ["/p/.claude"]}
    _, approval = offer_rules({}, "write, write(/p/.claude/), shell(make)")
    assert [str(rule) for rule in to_rules(approval, "session")] == [
        *("shell(make)", "write", "write(/p/.claude/)")
    ]
    _, approval = offer_rules({}, "write, write(/p/.claude/)")
    assert [str(rule) for rule in to_rules(approval, "session")] == ["write", "write(/p/.claude/)"]
    cover = describe_cover([Rule("write", "/p/.claude/")])
    assert cover == "every change below /p/.claude/, but for settings, hooks, plugins and servers."
    assert describe_cover([Rule("write", "/p/a")]) == "every change of /p/a."
