"""Hooks found in files: every source, every form, and what is wrong where."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.config.paths import Home
from trimtab.contracts.hooks import FoundHooks, HookEntry
from trimtab.customize.hook_files import find_hooks, fingerprint

HOOK = {"type": "command", "bash": "true"}


class Disk:
    """A home, a repository, a policy folder and a plugin."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.repository = folder / "repository"
        self.policy = folder / "policy"
        self.plugin = folder / "plugin"

    def write(self, path: Path, content: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def find(self, *, trusted: bool = True) -> FoundHooks:
        return find_hooks(
            Home(str(self.home), str(self.home)),
            str(self.repository) if trusted else None,
            plugins=[str(self.plugin)],
            policy=str(self.policy),
        )


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def hooks_of(command: str) -> dict[str, Any]:
    return {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": command}]}}


SOURCES = [
    ("policy", "policy/a.json"),
    ("user", "home/hooks/b.json"),
    ("user", "home/hooks/deep/er/c.json"),
    ("user", "home/settings.json"),
    ("repository", "repository/.github/hooks/d.json"),
    ("repository", "repository/.github/copilot/settings.json"),
    ("repository", "repository/.github/copilot/settings.local.json"),
    ("repository", "repository/.claude/settings.json"),
    ("repository", "repository/.claude/settings.local.json"),
    ("plugin", "plugin/hooks.json"),
    ("plugin", "plugin/hooks/hooks.json"),
    ("plugin", "plugin/.claude-plugin/plugin.json"),
]


@pytest.mark.proves("HOOK-01")
def test_every_source_is_read_in_order(disk: Disk, tmp_path: Path) -> None:
    for _, path in SOURCES:
        disk.write(tmp_path / path, hooks_of(path))
    found = disk.find()
    assert [(entry.origin, entry.command) for entry in found.entries] == SOURCES
    assert found.problems == ()
    untrusted = disk.find(trusted=False).entries
    assert [entry.origin for entry in untrusted if entry.origin == "repository"] == []


@pytest.mark.parametrize("manifest", ["more.json", ["more.json", "hooks.json"]])
def test_a_plugin_names_its_hook_files(disk: Disk, manifest: Any) -> None:
    disk.write(disk.plugin / "plugin.json", {"name": "p", "hooks": manifest})
    disk.write(disk.plugin / "more.json", hooks_of("more"))
    disk.write(disk.plugin / "hooks.json", hooks_of("usual"))
    found = disk.find()
    assert [entry.command for entry in found.entries] == ["usual", "more"]
    assert {entry.plugin for entry in found.entries} == {str(disk.plugin)}


def test_a_plugin_cannot_name_files_elsewhere(disk: Disk) -> None:
    disk.write(disk.plugin / "plugin.json", {"name": "p", "hooks": "../evil.json"})
    disk.write(disk.plugin.parent / "evil.json", hooks_of("evil"))
    found = disk.find()
    assert found.entries == ()
    assert "outside the plugin" in found.problems[0].message


def read_entry(disk: Disk, event: str, entry: Any) -> HookEntry:
    disk.write(disk.home / "hooks/x.json", {"version": 1, "hooks": {event: [entry]}})
    found = disk.find()
    assert found.problems == ()
    (only,) = found.entries
    return only


@pytest.mark.proves("HOOK-02")
def test_an_entry_says_what_runs_where_and_how_long(disk: Disk) -> None:
    fields = {"command": "bash", "args": ["-c", "x"], "cwd": "sub", "env": {"A": "b"}}
    entry = read_entry(disk, "preToolUse", {"type": "command", **fields, "timeout": 30000})
    assert entry.argv == ("bash", "-c", "x")
    assert entry.folder == "sub"
    assert entry.env == {"A": "b"}
    assert entry.seconds == 30
    assert read_entry(disk, "agentStop", {"command": "x", "timeout": 5}).seconds == 5
    assert read_entry(disk, "agentStop", {"command": "x", "timeoutSec": 0.5}).seconds == 0.5
    assert read_entry(disk, "agentStop", {"powershell": "x"}).powershell == "x"
    assert read_entry(disk, "agentStop", {"url": "https://x.test"}).type == "http"


@pytest.mark.parametrize(("name", "event"), [("Stop", "agentStop"), ("UserPromptSubmit", "userPromptSubmitted"), ("PreToolUse", "preToolUse")])  # fmt: skip
def test_claudes_names_and_groups_are_understood(disk: Disk, name: str, event: str) -> None:
    entry = read_entry(
        disk, name, {"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}
    )
    assert (entry.event, entry.matcher, entry.claude, entry.seconds) == (event, "Bash", True, 60)


WRONG = [
    ('{"hooks": {\n"preToolUse": [{]}}', 2, "not JSON"),
    ('{"hooks": {"preTool": []}}', 1, "no hook event preTool"),
    ('{"hooks": {"preToolUse": [\n\n{"type": "command"}]}}', 3, "names no command"),
    ('{"hooks": {"preToolUse": [\n{"type": "magic", "x": 1}]}}', 2, "'magic' is not known"),
    ('{"hooks": {"preToolUse": [{"type": "prompt", "prompt": "x"}]}}', 1, "only be given at"),
    ('{"hooks": {"preToolUse": [{"bash": 7}]}}', 1, "bash must be text"),
    ('{"hooks": {"preToolUse": ["x"]}}', 1, "is not an object"),
    ('{"hooks": []}', 1, "no object hooks"),
    ("[]", 1, "not a JSON object"),
    ('{"version": 2, "hooks": {}}', 1, "version 2"),
    ('{"hooks": {"postToolUze": []}}', 1, "perhaps postToolUse is meant; it is left out"),
    ('{"hooks": {"agentStop": [{"bash": "x", "matcher": "("}]}}', 1, "not a regular expression"),
    ('{"hooks": {"agentStop": [{"bash": "x", "timeoutSec": -1}]}}', 1, "greater than 0"),
    ('{"hooks": ' + '{"a": ' * 20000, 1, ""),
    ("\x00\x01", 0, "binary"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), WRONG, ids=range(len(WRONG)))
def test_a_problem_names_its_line_and_the_rest_loads(
    disk: Disk, text: str, line: int, message: str
) -> None:
    disk.write(disk.home / "hooks/a.json", text)
    disk.write(disk.home / "hooks/b.json", hooks_of("fine"))
    found = disk.find()
    assert found.entries[-1].command == "fine"
    assert any(message in problem.message and problem.line == line for problem in found.problems)


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {"preToolUze": [{"bash": "x"}]}}',
        '{"hooks": {"pretooluse": [{"bash": "x"}]}}',
        '{"hooks": {"preToolUse": ["x"]}}',
        '{"hooks": {"permissionRequests": [{"bash": "x"}]}}',
        '{"hook": {"preToolUse": [{"bash": "x"}]}}',
        '{"version": 2, "hooks": {"preToolUse": [{"bash": "x"}]}}',
    ],
)
def test_a_misspelt_guard_denies_everything(disk: Disk, text: str) -> None:
    """A typo in the name of a guard left it out, and everything it was to forbid was allowed."""
    disk.write(disk.home / "hooks/a.json", text)
    found = disk.find()
    (guard,) = found.unreadable
    assert guard.event in ("preToolUse", "permissionRequest")
    assert "it denies everything" in found.problems[0].message


def test_comments_and_trailing_commas_are_read(disk: Disk) -> None:
    text = '{// a\n"hooks": {"agentStop": [\n/* b */ {"bash": "x",},\n],}}'
    disk.write(disk.home / "hooks/x.json", text)
    (entry,) = disk.find().entries
    assert entry.line == 3


def test_the_repository_can_switch_off_its_own_hooks_and_no_others(disk: Disk) -> None:
    disk.write(disk.policy / "a.json", hooks_of("policy"))
    disk.write(disk.home / "hooks/a.json", hooks_of("user"))
    disk.write(disk.repository / ".github/hooks/a.json", hooks_of("repository"))
    off = {"disableAllHooks": True}
    disk.write(disk.repository / ".github/copilot/settings.json", off)
    assert [entry.command for entry in disk.find().entries] == ["policy", "user"]
    disk.write(disk.home / "settings.json", off)
    assert [entry.command for entry in disk.find().entries] == ["policy"]


def test_a_fingerprint_follows_the_scripts_but_not_the_place(disk: Disk) -> None:
    script = disk.repository / "tools/check.py"
    disk.write(script, "print(1)")
    disk.write(disk.repository / "log.jsonl", "1")
    command = 'python3 "$CLAUDE_PROJECT_DIR"/tools/check.py >> log.jsonl'
    disk.write(disk.repository / ".github/hooks/a.json", hooks_of(command))
    (entry,) = disk.find().entries
    before = fingerprint(entry, str(disk.repository))
    disk.write(disk.repository / "log.jsonl", "2")
    assert fingerprint(entry, str(disk.repository)) == before
    disk.write(script, "print(2)")
    assert fingerprint(entry, str(disk.repository)) != before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["type", "bash", "hooks", "matcher", "timeoutSec", "cwd", "env", "args", "url", "x"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(value=json_values)
def test_whatever_stands_in_a_file_is_an_entry_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    disk = Disk(tmp_path_factory.mktemp("hooks"))
    disk.write(disk.home / "hooks/a.json", {"hooks": {"preToolUse": [value]}})
    disk.write(disk.home / "hooks/b.json", hooks_of("fine"))
    found = disk.find()
    assert found.entries[-1].command == "fine"
    is_empty_group = isinstance(value, dict) and value.get("hooks") == []
    assert len(found.entries) > 1 or found.problems or is_empty_group


def test_a_policy_without_hooks_is_no_problem(disk: Disk) -> None:
    disk.write(disk.policy / "a.json", {"contentExclusion": {"*": ["x"]}})
    assert disk.find() == FoundHooks()
