"""Limits of the design that a machine can check."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trimtab"
MODULES = sorted(set(SOURCE.rglob("*.py")) - set(SOURCE.glob("cli/demo/project/*")))
FORBIDDEN_FOLDERS = {"core", "common", "utils", "helpers", "base"}


def test_no_source_file_is_longer_than_600_lines() -> None:
    long = {str(path): n for path in MODULES if (n := len(path.read_text().split("\n"))) > 601}
    assert not long


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert not long


def test_the_two_loops_together_fit_in_100_lines() -> None:
    loops = [SOURCE / "loop" / "drain.py", SOURCE / "loop" / "turns.py"]
    assert sum(len(path.read_text().rstrip().split("\n")) for path in loops) <= 100


def test_the_loop_imports_contracts_only() -> None:
    for path in (SOURCE / "loop").rglob("*.py"):
        for line in re.findall(
            r"^\s*(?:from|import) (trimtab[\w.]*)", path.read_text(), re.MULTILINE
        ):
            assert line.startswith(("trimtab.contracts", "trimtab.loop")), f"{path}: {line}"


def test_every_module_begins_with_a_sentence() -> None:
    for path in MODULES:
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, f"{path} has no docstring"
        assert docstring.split("\n")[0].rstrip().endswith((".", ":", "…")), f"{path}: {docstring}"


def test_no_folder_has_a_name_that_excludes_nothing() -> None:
    assert not {path.name for path in SOURCE.rglob("*") if path.is_dir()} & FORBIDDEN_FOLDERS


def test_public_names_are_at_most_twelve_and_all_there() -> None:
    import trimtab

    assert len(trimtab.__all__) <= 12
    for name in trimtab.__all__:
        assert getattr(trimtab, name) is not None


def imported_by(code: str) -> set[str]:
    """Top-level modules that are loaded after running `code` in a fresh interpreter."""
    probe = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-I", "-c", probe], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split("\n"))


def test_version_imports_next_to_nothing() -> None:
    code = "import sys; sys.argv = ['trimtab', '--version']; import trimtab.__main__ as m; m.main()"
    loaded = {name for name in imported_by(code) if name.startswith("trimtab")}
    assert loaded == {"trimtab", "trimtab.__main__", "trimtab.version"}


HEAVY = {
    "argparse", "dataclasses", "difflib", "email", "http.client", "httpx", "importlib.metadata",
    "jsonschema", "jsonschema_rs", "logging.config", "markdown_it", "mcp", "multiprocessing", "pathlib",
    "prompt_toolkit", "pydantic", "pygments", "rich", "sqlite3", "textual", "tomllib", "tree_sitter", "trimtab.transports.tui", "unittest",
    "urllib.request", "wcwidth", "yaml",
}  # fmt: skip


MCP_AT_START = {"trimtab.mcp", "trimtab.mcp.session_servers"}
"""Finds out whether any server is configured; the client is loaded when one is."""


def test_a_headless_run_imports_nothing_heavy_before_its_first_request() -> None:
    code = (
        "import trimtab.cli.start, trimtab.providers.endpoints, trimtab.transports.headless.jsonl"
    )
    loaded = imported_by(code)
    assert "trimtab.loop.drain" in loaded
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("trimtab.mcp")} <= MCP_AT_START


def test_a_session_for_which_nothing_is_configured_opens_without_what_judges_calls(
    tmp_path: Path,
) -> None:
    code = (
        "import asyncio\n"
        "from trimtab import Runtime, SessionOptions\n"
        "from trimtab.testing import Script, ScriptedProvider\n"
        f"env = {{'COPILOT_HOME': {str(tmp_path / 'home')!r}, 'PATH': {os.environ['PATH']!r}}}\n"
        "async def main():\n"
        "    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of([])))\n"
        f"    live = await runtime.create(SessionOptions(cwd={str(tmp_path)!r}))\n"
        "    await live.close()\n"
        "asyncio.run(main())"
    )
    loaded = imported_by(code)
    assert "trimtab.policy.rule_files" in loaded
    assert not loaded & {"trimtab.permissions.rules", "trimtab.permissions.decide"}
    assert not [name for name in loaded if name.startswith("trimtab.permissions.shell")]
    assert {name for name in loaded if name.startswith("trimtab.mcp")} <= MCP_AT_START
    assert not [name for name in loaded if re.fullmatch(r"trimtab\.tools\.\w+\.tool", name)]
    assert not loaded & {"trimtab.providers.copilot", "trimtab.customize.server_entry", "hashlib"}


@pytest.mark.parametrize(
    "row", re.findall(r"^\| (.+?) \| `(.+?)` \|$", (ROOT / "AGENTS.md").read_text(), re.MULTILINE)
)
def test_every_path_in_the_where_is_it_table_exists(row: tuple[str, str]) -> None:
    assert (ROOT / row[1]).exists(), row


def test_agents_md_is_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text().split("\n")) <= 121


@pytest.mark.parametrize(
    "path",
    re.findall(
        r"^\| `([\w/]+\.py)` \|",
        (ROOT / "docs/concepts/architecture.md").read_text(),
        re.MULTILINE,
    ),
)
def test_every_file_in_the_flows_of_the_architecture_page_exists(path: str) -> None:
    assert (SOURCE / path).is_file()


@pytest.mark.parametrize(
    "path",
    re.findall(
        r"^\| … .+ \| `([\w/.]+)`",
        (ROOT / "docs/concepts/architecture.md").read_text(),
        re.MULTILINE,
    ),
)
def test_every_place_to_change_something_exists(path: str) -> None:
    assert (SOURCE / path).exists()


def test_every_package_is_on_the_map() -> None:
    page = (ROOT / "docs/concepts/architecture.md").read_text()
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages <= named
