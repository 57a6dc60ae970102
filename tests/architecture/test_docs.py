"""Generated reference pages say what the code says."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["flags.md", "events.md", "event-schema.json"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    made = load_generator().PAGES[name]()
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == made, "run make docs"
