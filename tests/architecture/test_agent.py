"""An agent names its parts: nobody looks for one in the pipeline or edits the pipeline."""

import ast
from pathlib import Path

import msgspec
import pytest

from trimtab.agents.agent import AgentParts, SessionAgent
from trimtab.contracts.agent import Agent
from trimtab.contracts.run import Run

SOURCE = Path(__file__).parents[2] / "src" / "trimtab"
OUTSIDE_THE_LOOP = sorted(set(SOURCE.rglob("*.py")) - set((SOURCE / "loop").rglob("*.py")))


def mentions_pipeline(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "pipeline" for n in ast.walk(node))


@pytest.mark.parametrize("path", OUTSIDE_THE_LOOP, ids=str)
def test_only_the_loop_reads_the_pipeline(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            assert not mentions_pipeline(node.iter), f"{path} searches the pipeline"
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assert not any(map(mentions_pipeline, targets)), f"{path} edits the pipeline"
        if isinstance(node, ast.Subscript):
            assert not mentions_pipeline(node.value), f"{path} picks from the pipeline"


def test_the_pipeline_is_the_parts_in_the_order_of_their_fields() -> None:
    names = AgentParts.__struct_fields__
    parts = {name: object() for name in names}
    agent_parts = AgentParts(**parts)  # type: ignore[arg-type]
    assert agent_parts.in_order() == tuple(parts.values())
    without = msgspec.structs.replace(agent_parts, steering=None)
    assert parts["steering"] not in without.in_order()


def test_an_agent_cannot_be_changed() -> None:
    assert Agent.__struct_config__.frozen
    assert SessionAgent.__struct_config__.frozen
    assert AgentParts.__struct_config__.frozen


def test_a_run_is_small_and_holds_no_configuration() -> None:
    fields = Run.__struct_fields__
    assert len(fields) <= 17
    assert not {"model", "tools", "processors", "options", "provider"} & set(fields)
