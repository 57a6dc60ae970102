"""The `fetch_copilot_cli_documentation` tool: what it answers, here and from a built package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from toolkit import Bench
from trimtab.tools.fetch_copilot_cli_documentation.pages import Pages

ROOT = Path(__file__).parents[3]
NAME = "fetch_copilot_cli_documentation"


async def test_without_a_page_it_says_how_to_begin_and_what_there_is(bench: Bench) -> None:
    text = await bench.text(NAME)
    assert text.startswith("# Getting started")
    assert "- guides/hooks: Hooks" in text
    assert "- reference/flags: Flags" in text
    assert "decisions" not in text


@pytest.mark.parametrize(
    "page", ["guides/hooks", "hooks", "guides/hooks.md", "../guides/hooks.md", "docs/guides/Hooks"]
)
async def test_a_page_is_found_by_name_or_link(bench: Bench, page: str) -> None:
    assert (await bench.text(NAME, page=page)).startswith("# Hooks")


@pytest.mark.parametrize("page", ["nothing", "../../pyproject.toml", "/etc/passwd", "guides"])
async def test_other_files_are_no_pages(bench: Bench, page: str) -> None:
    result = await bench.call(NAME, page=page)
    assert result.kind == "failure"
    assert "guides/hooks" in result.text


def test_a_built_package_carries_the_pages(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        package.extractall(tmp_path / "site")
    pages = Pages(str(tmp_path / "site" / "trimtab" / "docs"))
    here = Pages.find()
    assert here is not None
    assert pages.names == here.names
    assert pages.contents() == here.contents()
