"""The import graph: no cycles, and imports inside functions only where a start is faster by them."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SOURCE / "trimtab").rglob("*.py"))}


class WithoutTypes(ast.NodeTransformer):
    """Removes imports that only type checkers see."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        return self.generic_visit(node)


def find_imports(tree: ast.AST) -> Iterator[str]:
    """Every module of ours that a module may load, at its top or in a function."""
    for node in ast.walk(WithoutTypes().visit(tree)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name in MODULES:
                yield name
            elif (parent := name.rpartition(".")[0]) in MODULES:
                yield parent


def test_the_import_graph_has_no_cycle() -> None:
    graph = {
        name: {found for found in find_imports(ast.parse(path.read_text())) if found != name}
        for name, path in MODULES.items()
        if name != "trimtab"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


HEADLESS_START = """
import asyncio, trimtab.cli.start, trimtab.providers.endpoints, trimtab.transports.headless.jsonl
from trimtab import Runtime, SessionOptions
from trimtab.testing import Script, ScriptedProvider
async def main():
    runtime = Runtime(env={env!r}, provider=ScriptedProvider(Script.of([])))
    live = await runtime.create(SessionOptions(cwd={cwd!r}))
    await live.close()
asyncio.run(main())
import sys
print('\\n'.join(sys.modules))
"""
OTHER_STARTS = {
    "trimtab.policy.guards": "a start with settings: few of them have rules or unknown keys",
    "trimtab.__main__": "every start; --version loads nothing else",
    "trimtab.cli.main": "every start",
    "trimtab.cli.light_uuid": "every start; the import is its purpose",
    "trimtab.cli.terminal": "the terminal; its first frame waits for these imports",
    "trimtab.transports.tui.app": "the terminal: panels are loaded when they are opened",
    "trimtab.transports.tui.local_commands": "the terminal: panels are loaded when they are opened",
    "trimtab.transports.tui.transcript": "the terminal: Markdown is loaded with the first reply",
    "trimtab.commands.session": "the terminal: few people ask MCP servers anything",
    "trimtab.transports.acp.agent": "an editor waits for the answer to initialize",
    "trimtab.transports.acp.sessions": "an editor waits for its new session",
    "trimtab.host.hosted": "editors wait for their session; few clients show canvases",
    "trimtab.host.loading": "the SDK's server and editors are answered before it is loaded",
    "trimtab.host.resumed_schedules": "the terminal: few sessions have schedules",
    "trimtab.host.opened": "the SDK's server: few sessions have a fleet or close",
    "trimtab.transports.rpc.open": "the SDK's server: few clients bring a database",
    "trimtab.customize.touched_instructions": "a start in a folder with instructions",
    "trimtab.transports.rpc.server": "the SDK's server answers before it loads sessions",
    "trimtab.customize.instructions": "a start in a folder with instructions",
    "trimtab.customize.skills": "a start in a folder with skills",
    "trimtab.customize.github_token": "every start looks for a token; few have accounts",
    "trimtab.mcp.connections": "a start with MCP servers; most need no sign-in",
    "trimtab.mcp.host": "a start with MCP servers; few have resources",
    "trimtab.mcp.server": "a start with MCP servers whose tools are known contacts none",
    "trimtab.mcp.tool": "a start with MCP servers; nothing is called yet",
    "trimtab.agents.pool": "sub-agents; few are answered by another program",
    "trimtab.agents.subagent": "sub-agents; few are answered by another program",
    "trimtab.providers.wires.chat_reader": "the first reply; few have citations",
    "trimtab.permissions.paths": "the first tool call; one that reads meets no protected names",
    "trimtab.permissions.rules": "the first tool call; few rules have patterns or addresses",
    "trimtab.permissions.decide": "the first tool call; most need neither parser nor rules",
    "trimtab.tools.splice": "the first edit; one that fits needs no search for similar text",
    "trimtab.tools.view.tool": "the first view; few files are notebooks",
    "trimtab.workspace.programs": "the first command; few run in a sandbox",
    "trimtab.workspace.sandbox.confinement": "the first command; few reach hosts by the proxy",
    "trimtab.workspace.shell": "the first command; few run in a sandbox",
}
"""Modules outside the headless start whose imports a person would wait for, with the reason."""
SLOW = {
    "difflib", "hashlib", "importlib", "ipaddress", "sqlite3", "tempfile", "tomllib", "urllib",
}  # fmt: skip
"""Modules of the standard library that take milliseconds to import."""


def find_late_imports(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported inside functions, without slow ones and other people's."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [node.module]
                for name in names:
                    root = name.partition(".")[0]
                    if root == "trimtab" or (root in sys.stdlib_module_names and root not in SLOW):
                        yield name


def test_only_what_a_start_loads_imports_inside_functions(tmp_path: Path) -> None:
    env = {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    code = HEADLESS_START.format(env=env, cwd=str(tmp_path))
    probe = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    allowed = {*probe.stdout.decode().split(), *OTHER_STARTS}
    late = {
        name: found
        for name, path in MODULES.items()
        if name not in allowed and (found := sorted(find_late_imports(ast.parse(path.read_text()))))
    }
    assert not late, f"import these at the top: {late}"


def test_the_list_of_other_starts_names_only_modules_that_need_it() -> None:
    unneeded = [
        name
        for name in OTHER_STARTS
        if name not in MODULES or not list(find_late_imports(ast.parse(MODULES[name].read_text())))
    ]
    assert not unneeded


def test_a_start_with_known_mcp_servers_loads_nothing_that_contacts_them() -> None:
    names = ("connections", "host", "deferral", "session_servers")
    code = ";".join(f"import trimtab.mcp.{name}" for name in names)
    code += ";import trimtab.customize.mcp_servers, sys; print('\\n'.join(sys.modules))"
    probe = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    late = {
        *("trimtab.mcp.client", "trimtab.mcp.http", "trimtab.mcp.codec", "trimtab.mcp.listing"),
        *("trimtab.mcp.elicitation", "trimtab.mcp.resources", "trimtab.hooks.caller"),
        *("trimtab.workspace.piped_program", "hashlib", "json", "urllib.parse", "ipaddress"),
    }
    assert not late & {*probe.stdout.decode().split()}
