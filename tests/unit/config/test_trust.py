"""Trusting folders, and losing trust when their contents change."""

import json
import os
from pathlib import Path

import pytest

from trimtab.config.paths import Home
from trimtab.config.trust import Trust, find_loadable, find_root
from trimtab.contracts.errors import ConfigurationError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / "home"
    folder.mkdir()
    return Home(str(folder), str(folder))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    return folder


def test_nothing_is_trusted_at_first(home: Home, project: Path) -> None:
    assert not Trust(home).is_trusted(str(project))


def test_the_repository_is_trusted_from_any_of_its_folders(home: Home, project: Path) -> None:
    Trust(home).trust(str(project / "src"))
    assert Trust(home).is_trusted(str(project))
    assert Trust(home).is_trusted(str(project / "src"))
    assert not Trust(home).is_trusted(str(project.parent))
    content = json.loads((Path(home.config) / "config.json").read_text())
    assert content == {"trusted_folders": [str(project)]}


def test_a_name_that_only_begins_alike_is_not_trusted(home: Home, project: Path) -> None:
    Trust(home).trust(str(project))
    other = project.parent / "project-evil"
    other.mkdir()
    assert not Trust(home).is_trusted(str(other))


def test_a_link_is_trusted_as_what_it_points_to(home: Home, project: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    Trust(home).trust(str(link))
    assert Trust(home).is_trusted(str(project))


def test_both_spellings_are_read_and_other_fields_survive(home: Home, project: Path) -> None:
    Path(home.settings).write_text(json.dumps({"trustedFolders": [str(project)]}))
    assert Trust(home).is_trusted(str(project))
    config = Path(home.config) / "config.json"
    config.write_text('{"firstLaunchAt": "x", // machine state\n "trusted_folders": ["relative"]}')
    Trust(home).trust("/some/where")
    content = json.loads(config.read_text())
    assert content == {"firstLaunchAt": "x", "trusted_folders": ["relative", "/some/where"]}
    assert not Trust(home).is_trusted(os.path.abspath("relative"))


@pytest.mark.parametrize(
    "text", ["{", "[]", "\x00", '{"trusted_folders": "x"}', '{"trusted_folders": [1]}']
)
def test_a_file_that_makes_no_sense_trusts_nothing(home: Home, project: Path, text: str) -> None:
    (Path(home.config) / "config.json").write_text(text)
    assert not Trust(home).is_trusted(str(project))


def test_a_broken_file_is_not_overwritten(home: Home, project: Path) -> None:
    config = Path(home.config) / "config.json"
    config.write_text("{broken")
    with pytest.raises(ConfigurationError, match=r"config\.json:1"):
        Trust(home).trust(str(project))
    assert config.read_text() == "{broken"


def test_content_is_accepted_at_first_sight_and_then_as_it_was(home: Home, project: Path) -> None:
    trust = Trust(home)
    assert trust.accepts(str(project), "mcp", "server", "digest")
    trust.accept(str(project), "mcp", [("server", "digest")])
    assert trust.accepts(str(project), "mcp", "server", "digest")
    assert trust.accepts(str(project), "mcp", "renamed", "digest")
    assert not trust.accepts(str(project), "mcp", "server", "other")
    assert not trust.accepts(str(project), "mcp", "new", "new")
    assert trust.accepts(str(project), "hooks", "any", "any")


def test_only_what_is_there_is_loadable(project: Path) -> None:
    (project / ".github/hooks").mkdir(parents=True)
    assert find_loadable(str(project)) == ()
    (project / ".github/hooks/a.json").write_text("{}")
    (project / ".mcp.json").write_text("{}")
    assert [item.path for item in find_loadable(str(project))] == [".github/hooks", ".mcp.json"]


def test_the_root_is_the_nearest_repository(project: Path, tmp_path: Path) -> None:
    assert find_root(str(project / "src")) == str(project)
    assert find_root(str(tmp_path)) == str(tmp_path)
