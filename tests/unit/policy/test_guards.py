"""Settings whose rules or limits cannot be read, and those that may be read all the same."""

import os
from pathlib import Path

import pytest

from customizekit import write
from trimtab.config.paths import Home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import ConfigurationError
from trimtab.policy.guards import find_intended, read_guarded


def home_in(folder: Path) -> Home:
    return Home(config=str(folder), state=str(folder / "state"))


@pytest.mark.parametrize(
    ("key", "intended"),
    [
        ("permission", "permissions"),
        ("premissions", "permissions"),
        ("PERMISSIONS", "permissions"),
        ("content_exclusion", "contentExclusion"),
        ("contentExclusions", "contentExclusion"),
        ("denied_urls", "deniedUrls"),
        ("deniedUrl", "deniedUrls"),
        ("sandBox", "sandbox"),
        ("limit", "limits"),
        ("deny", "permissions.deny"),
        ("denny", "permissions.deny"),
        ("deny-tool", "permissions.deny"),
        ("deny_urls", "deniedUrls"),
        ("blockedDomains", "deniedUrls"),
        ("sandboxx", "sandbox"),
        ("ask", "permissions.ask"),
        ("disallowedTools", "permissions.deny"),
        ("blockedCommands", "permissions.deny"),
        ("excludedTools", "permissions.deny"),
        ("modle", ""),
        ("density", ""),
        ("golden", ""),
        ("hidden", ""),
        ("askUsr", ""),
        ("allowedModels", ""),
    ],
)
def test_a_name_close_to_a_guard_is_recognised(key: str, intended: str) -> None:
    assert find_intended(key) == intended


@pytest.mark.parametrize(
    "text", ["", "{}", '{"modle": "x"}', '\ufeff{"model": "x",}', "// none\n{}"]
)
def test_other_settings_may_be_unknown(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "settings.json", text)
    read_guarded(home_in(tmp_path), str(file))


@pytest.mark.parametrize(
    "text",
    [
        '{"perms": {"deny": ["shell(rm)"]}}',
        '{"guard": {" Ask ": []}}',
        '{"permision": {"deny": ["shell(rm)"]',
        '{"x": {"disallowed": ["shell(rm)"]',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_rules_under_another_name_are_an_error(tmp_path: Path, text: str, encoding: str) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(text.encode(encoding))
    if encoding == "utf-16" and "guard" in text:
        return  # nothing in such a file says that it holds rules
    with pytest.raises(ConfigurationError):
        read_guarded(home_in(tmp_path), str(file))


def test_a_broken_file_without_rules_is_replaced_by_its_last_good_copy(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", '{"permissions": {"deny": ["shell(rm)"]}}')
    home = home_in(tmp_path)
    rules = Settings(home).load(str(file))
    file.write_text("{")
    assert read_guarded(home, str(file)) == rules == {"permissions": {"deny": ["shell(rm)"]}}
    file.write_text('{"permissions": {"deny": ["shell(rm)"]}')
    with pytest.raises(ConfigurationError, match="its rules are not known"):
        read_guarded(home, str(file))


def test_a_file_that_is_none_has_no_rules(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    assert read_guarded(home, str(tmp_path / "missing.json")) == {}
    (tmp_path / "settings.json").mkdir()
    assert read_guarded(home, str(tmp_path / "settings.json")) == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; run as another user")
def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}")
    file.chmod(0)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_guarded(home_in(tmp_path), str(file))


def test_a_key_given_twice_elsewhere_is_none_of_our_business(tmp_path: Path) -> None:
    text = '{"model": "a", "model": "b", "permissions": {}, "subagents": {"a": 1, "a": 2}}'
    file = write(tmp_path / "settings.json", text)
    assert read_guarded(home_in(tmp_path), str(file))["model"] == "b"
