"""Texts that a person or a model reads are not written in the names of our classes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "trimtab"
TREES = {
    path.relative_to(SOURCE): ast.parse(path.read_text())
    for path in SOURCE.rglob("*.py")
    if "demo/project" not in str(path)
}


def is_expression(text: str) -> bool:
    """Return True for quoted annotations, such as "Mapping[str, McpServer]"."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def find_texts(tree: ast.AST) -> Iterator[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if id(node) not in docstrings and " " in text and not is_expression(text):
                yield text


def test_no_text_contains_the_name_of_a_class() -> None:
    """A rename of `Past` once turned "Past sessions" into "ClosedSession sessions"."""
    classes = {
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and re.search(r"[a-z][A-Z]", node.name)
    }
    found = [
        (str(path), text)
        for path, tree in TREES.items()
        for text in find_texts(tree)
        if classes.intersection(re.findall(r"\w+", text))
    ]
    assert len(classes) > 100
    assert not found
