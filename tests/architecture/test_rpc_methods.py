"""The table of SDK methods says what the server handles."""

from importlib import import_module
from pathlib import Path

import pytest

from trimtab.transports.rpc.dispatch import NAMESPACES, find_method
from trimtab.transports.rpc.methods.unsupported import EMPTY, REFUSED

TABLE = Path(__file__).parents[2] / "docs" / "sdk-methods.tsv"
ROWS = {
    method: (status, why)
    for method, status, why in (
        line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]
    )
}
STATUSES = {"works", "empty", "refused", "unknown"}
MODULES = sorted(set(NAMESPACES.values()))


@pytest.mark.parametrize("module", MODULES)
def test_every_method_that_is_handled_is_in_the_table(module: str) -> None:
    table = import_module(f"trimtab.transports.rpc.methods.{module}").methods.table
    missing = [method for method in table if method not in ROWS]
    assert not missing, "add them to docs/sdk-methods.tsv and run make docs"


def test_every_method_of_the_table_is_handled_or_said_to_be_unknown() -> None:
    wrong = [
        method
        for method, (status, _) in ROWS.items()
        if (find_method(method) is None) is not (status == "unknown")
    ]
    assert not wrong


@pytest.mark.parametrize(("status", "methods"), [("empty", EMPTY), ("refused", REFUSED)])
def test_methods_without_anything_behind_them_are_not_said_to_work(
    status: str, methods: dict[str, object]
) -> None:
    assert {method: ROWS[method][0] for method in methods} == dict.fromkeys(methods, status)


def test_what_does_not_work_has_a_reason() -> None:
    assert all(why for status, why in ROWS.values() if status != "works")
    assert {status for status, _ in ROWS.values()} == STATUSES
