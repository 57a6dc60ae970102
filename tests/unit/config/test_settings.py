"""Settings of three levels, JSON with comments, and files that are broken for a while."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from customizekit import write
from trimtab.config.edit import change_field, read_object
from trimtab.config.feature_flags import TIERS, resolve_flags
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import Home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import ConfigurationError

FOLDER = ".github/copilot"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def home_in(folder: Path) -> Home:
    return Home(config=str(folder / "home"), state=str(folder / "state"))


def settings_in(folder: Path, *, repository: bool = True) -> Settings:
    return Settings(home_in(folder), str(folder) if repository else None)


def test_later_levels_win_and_objects_are_merged(tmp_path: Path) -> None:
    write(
        tmp_path / "home/settings.json",
        '{"model": "a", "subagents": {"maxDepth": 1, "x": 1}, "stream": true}',
    )
    write(tmp_path / FOLDER / "settings.json", '{"model": "b", "subagents": {"maxDepth": 2}}')
    write(tmp_path / FOLDER / "settings.local.json", '{"model": "c"}')
    settings = settings_in(tmp_path)
    assert settings.values == {"model": "c", "subagents": {"maxDepth": 2, "x": 1}, "stream": True}
    assert settings.get("subagents.maxDepth", int, 0) == 2
    assert settings.get("subagents.x", int, 0) == 1
    assert settings.get("nothing.here", int, 7) == 7
    assert settings.problems == ()
    overridden = {(entry.level, entry.key): entry.overridden_by for entry in settings.entries}
    assert overridden["user", "model"] == "repository"
    assert overridden["local", "model"] is None
    assert settings_in(tmp_path, repository=False).get("model", str, "") == "a"


def test_a_repository_cannot_set_what_is_the_persons(tmp_path: Path) -> None:
    write(
        tmp_path / FOLDER / "settings.json",
        '{"trustedFolders": ["/"], "proxyUrl": "http://evil", "model": "m"}',
    )
    settings = settings_in(tmp_path)
    assert settings.values == {"model": "m"}
    assert len(settings.problems) == 2


def test_comments_and_trailing_commas_are_fine(tmp_path: Path) -> None:
    text = '\ufeff{\n // one\n "model": "a // no comment", /* two\n */ "disabledSkills": ["x", "y",],\n}\n'
    write(tmp_path / "home/settings.json", text)
    settings = settings_in(tmp_path)
    assert settings.get("model", str, "") == "a // no comment"
    assert settings.get("disabledSkills", list[str], []) == ["x", "y"]


def test_unknown_keys_and_wrong_types_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "home/settings.json", '{"modle": "a", "disabledSkills": "x", "$schema": "s"}')
    settings = settings_in(tmp_path)
    assert settings.get("disabledSkills", list[str], []) == []
    assert [problem.message for problem in settings.problems] == [
        "unknown setting modle",
        "disabledSkills is ignored: it needs a value of type strings",
    ]


def test_names_with_a_dot_are_those_of_the_object(tmp_path: Path) -> None:
    """They had no effect, although the reference says that a key may be flat."""
    text = '{"limits": {"maxTurns": 3}, "limits.maxTokens": 5, "sandbox.enabled": true, "a.b": 1}'
    write(tmp_path / "home/settings.json", text)
    settings = settings_in(tmp_path)
    assert settings.values == {
        "limits": {"maxTurns": 3, "maxTokens": 5},
        "sandbox": {"enabled": True},
        "a.b": 1,
    }
    assert settings.get("limits.maxTokens", int, 0) == 5


def test_a_broken_file_leaves_the_last_good_copy_in_force_and_names_the_line(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "home/settings.json", '{"model": "good"}')
    assert settings_in(tmp_path).get("model", str, "") == "good"
    path.write_text('{\n "model": "half\n')
    broken = settings_in(tmp_path)
    assert broken.get("model", str, "") == "good"
    (problem,) = broken.problems
    assert (problem.file, problem.line) == (str(path), 2)
    assert "its last good copy is used" in problem.message
    path.write_text('{"model": "mended"}')
    assert settings_in(tmp_path).get("model", str, "") == "mended"


@pytest.mark.parametrize("text", ["[1]", "{", "\xff", '{"a": ' + "[" * 20000])
def test_a_file_that_never_was_good_is_one_problem(tmp_path: Path, text: str) -> None:
    write(tmp_path / "home/settings.json", text.encode("latin-1"))
    settings = settings_in(tmp_path)
    assert settings.values == {}
    assert len(settings.problems) == 1


@given(VALUES, st.sampled_from(["// c\n", "/* c */", " ", "\n", ""]))
def test_json_with_comments_around_it_reads_as_the_json(value: Any, noise: str) -> None:
    data = msgspec.json.encode(value)
    assert read_jsonc(noise.encode() + data + b"\n" + noise.encode()) == value


@given(st.text(alphabet='{}[]",:/*\n\\ a1', max_size=40))
def test_no_text_makes_reading_fail_otherwise_than_with_a_problem(text: str) -> None:
    line = 1
    try:
        read_jsonc(text.encode())
    except JsonProblem as problem:
        line = problem.line
    assert line >= 1


def test_changing_a_field_keeps_comments_and_the_others(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.json", '{\n  // mine\n  "a": 1, // one\n  "b": [1,\n 2], // two\n}\n'
    )
    change_field(str(path), "b", ["x"])
    change_field(str(path), "c", True)
    text = path.read_text()
    assert "// mine" in text
    assert "// one" in text
    assert read_object(str(path)) == {"a": 1, "b": ["x"], "c": True}
    change_field(str(path), "a", None)
    change_field(str(path), "c", None)
    assert read_object(str(path)) == {"b": ["x"]}
    assert "// two" in path.read_text()


OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(OBJECTS, st.sampled_from("abcde"), VALUES, st.booleans())
def test_a_change_changes_one_field_and_nothing_else(
    content: dict[str, Any], key: str, value: Any, commented: bool
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.json")
        text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
        path.write_bytes((("// head\n" + text + "\n// tail\n") if commented else text).encode())
        change_field(str(path), key, value)
        expected = {**content, key: value}
        if value is None:
            del expected[key]
        assert read_object(str(path)) == expected


def test_a_broken_file_is_not_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", "{broken")
    with pytest.raises(ConfigurationError, match="correct it"):
        change_field(str(path), "a", 1)
    assert path.read_text() == "{broken"


@pytest.mark.proves("FLAG-01", "FLAG-03")
def test_flags_follow_their_tier_then_the_file_then_the_environment(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    usual = resolve_flags(home, {})
    assert {name: flag.tier for name, flag in usual.items()} == dict(TIERS)
    by_default = {name for name, flag in usual.items() if flag.enabled}
    assert by_default == {name for name, tier in TIERS.items() if tier in ("on", "staff")}
    assert usual["FLEET_COMMAND"].state == "on request"
    trying = resolve_flags(home, {}, experimental=True)
    assert trying["FLEET_COMMAND"].enabled
    assert resolve_flags(home, {}, experimental=False)["FLEET_COMMAND"].refused
    write(
        tmp_path / "home/config.json",
        '{"feature_flags": {"enabled": ["QUEUED_COMMANDS", "own_flag"]}}',
    )
    listed = resolve_flags(home, {})
    assert listed["QUEUED_COMMANDS"].enabled
    assert listed["OWN_FLAG"].enabled
    env = {
        "COPILOT_CLI_ENABLED_FEATURE_FLAGS": "DISABLE_WEB_TOOLS, x",
        "COPILOT_CLI_QUEUED_COMMANDS": "false",
    }
    last = resolve_flags(home, env)
    assert last["DISABLE_WEB_TOOLS"].enabled
    assert last["X"].enabled
    assert not last["QUEUED_COMMANDS"].enabled
    assert last["QUEUED_COMMANDS"].decided_by == "COPILOT_CLI_QUEUED_COMMANDS"
