"""The import graph: no cycles, whenever an import is executed."""

import ast
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
