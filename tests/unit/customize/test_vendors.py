"""Every field of another agent's settings is used, or there is a reason why not."""

import json
from pathlib import Path

from customizekit import places_in, write
from trimtab.customize.vendors import UNKNOWN, find_vendor_settings

CLAUDE = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls)"]},
    "env": {"A": "b"},
    "hooks": {},
    "statusLine": {},
    "brandNew": 1,
}


def test_each_field_is_named_with_its_reason(tmp_path: Path) -> None:
    write(tmp_path / "repo/.claude/settings.json", json.dumps(CLAUDE))
    write(
        tmp_path / "home/.codex/config.toml",
        'approval_policy = "never"\n[mcp_servers.x]\ncommand = "y"\n',
    )
    write(
        tmp_path / "home/.gemini/settings.json",
        '{"context": {"fileName": "X.md"}, // c\n "mcpServers": {}}',
    )
    entries, problems = find_vendor_settings(places_in(tmp_path))
    assert problems == []
    by_name = {(entry.source, entry.name): entry for entry in entries}
    assert {name for source, name in by_name if source == "claude"} == set(CLAUDE)
    used = {key for key, entry in by_name.items() if entry.enabled}
    assert used == {
        ("claude", "hooks"),
        ("codex", "mcp_servers"),
        ("gemini", "mcpServers"),
        ("gemini", "context"),
    }
    assert by_name["claude", "brandNew"].why == UNKNOWN
    assert "--model" in by_name["claude", "model"].why
    assert "--allow-tool" in by_name["codex", "approval_policy"].why
    assert by_name["gemini", "context"].fields["context.fileName"] == "used"
    assert by_name["claude", "permissions"].fields["permissions.allow"].startswith("no effect")


def test_a_folder_that_is_not_trusted_is_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path / "repo/.claude/settings.json", json.dumps(CLAUDE))
    assert find_vendor_settings(places_in(tmp_path, trusted=False)) == ([], [])


def test_a_broken_file_is_one_problem(tmp_path: Path) -> None:
    write(tmp_path / "home/.claude/settings.json", "{\n]")
    write(tmp_path / "home/.codex/config.toml", "= x")
    write(tmp_path / "home/.gemini/settings.json", '{"ui": 1}')
    entries, problems = find_vendor_settings(places_in(tmp_path))
    assert [entry.name for entry in entries] == ["ui"]
    assert len(problems) == 2
