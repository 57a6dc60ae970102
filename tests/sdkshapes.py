"""Reads from the official client how it calls each method and reads the answer."""

import ast
import inspect
from enum import EnumType
from functools import cache
from typing import Any, NamedTuple

from copilot.generated import rpc

PLAIN: dict[str, Any] = {
    "from_str": "x",
    "from_bool": True,
    "from_int": 1,
    "from_float": 1.0,
    "from_list": [],
    "from_dict": {},
    "from_datetime": "2026-01-01T00:00:00.000Z",
}
"""The client's converters, and a value that each takes."""


class Method(NamedTuple):
    params: str
    """The class of the parameters; empty if there are none."""
    convert: ast.expr | None
    """The expression by which the client reads the answer, in which `raw` is the answer."""


class _Raw(ast.NodeTransformer):
    def visit_Await(self, node: ast.Await) -> ast.AST:
        return ast.Name("raw", ast.Load())


@cache
def client_classes() -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(rpc))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


@cache
def client_methods() -> dict[str, Method]:
    """Every method of the generated client by its name on the wire."""
    found = {}
    for owner in client_classes().values():
        for function in owner.body:
            if isinstance(function, ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if (name := _requested(node)) is not None:
                        found[name] = Method(_parameters(function), _conversion(function))
    return found


def _requested(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr="request"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return None


def _parameters(function: ast.AsyncFunctionDef) -> str:
    for argument in function.args.args:
        if argument.arg == "params" and argument.annotation is not None:
            return ast.unparse(argument.annotation).partition(" ")[0].strip("'")
    return ""


def _conversion(function: ast.AsyncFunctionDef) -> ast.expr | None:
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    converted: ast.expr = _Raw().visit(last.value)
    return converted


def read_answer(name: str, raw: Any) -> Any:
    """Read an answer as the client does. Raises whatever the client raises."""
    expression = client_methods()[name].convert
    if expression is None:
        return raw
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), name, "eval")
    return eval(code, {**vars(rpc), "raw": raw})


def unread_fields(raw: Any, read: Any, where: str = "") -> list[str]:
    """Return the fields of an answer that the client's types do not know."""
    if isinstance(raw, dict) and isinstance(read, dict):
        unknown = [f"{where}{key}" for key in raw if key not in read and raw[key] is not None]
        known = (unread_fields(raw[key], read[key], f"{where}{key}.") for key in raw if key in read)
        return unknown + [field for part in known for field in part]
    if isinstance(raw, list) and isinstance(read, list):
        pairs = zip(raw, read, strict=True)
        return sorted({field for a, b in pairs for field in unread_fields(a, b, where)})
    return []


def sample(name: str) -> dict[str, Any]:
    """Return an object with the required fields of a class of parameters."""
    found: dict[str, Any] = {}
    node = client_classes().get(name)
    for function in node.body if node is not None else ():
        if isinstance(function, ast.FunctionDef) and function.name == "from_dict":
            for line in function.body:
                if isinstance(line, ast.Assign) and (key := _key(line.value)) is not None:
                    found[key] = _value(line.value)
    return found


def _key(value: ast.expr) -> str | None:
    """Return the name of a required field, or None."""
    text = ast.unparse(value)
    if "obj.get(" not in text or text.startswith("obj.get(") or "from_none" in text:
        return None
    return text.partition("obj.get(")[2].partition(")")[0].strip("'\"")


def _value(value: ast.expr) -> Any:
    if not isinstance(value, ast.Call):
        return None
    name = ast.unparse(value.func)
    if name in PLAIN:
        return PLAIN[name]
    if name.endswith(".from_dict"):
        return sample(name.removesuffix(".from_dict"))
    kind: Any = getattr(rpc, name, None)
    return next(iter(kind)).value if isinstance(kind, EnumType) else None
