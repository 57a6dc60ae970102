"""Typed calls of the official Python client, over pipes and over a port."""

import inspect
from typing import Any

import pytest
from copilot.generated import rpc

from sdkcalls import AGENTS, SCENARIOS, SKILL, Step, replies_of
from sdkkit import Sdk, Talk, talking


def fill(value: Any, facts: dict[str, str]) -> Any:
    """Replace `{cwd}`, `{id}` and `{home}` in strings."""
    if isinstance(value, dict):
        return {fill(name, facts): fill(entry, facts) for name, entry in value.items()}
    if isinstance(value, list):
        return [fill(entry, facts) for entry in value]
    if isinstance(value, str):
        for name, fact in facts.items():
            value = value.replace("{" + name + "}", fact)
    return value


def check(found: Any, expected: Any, where: str = "answer") -> None:
    """Fail unless `found` has what is expected; `...` stands for anything but nothing."""
    if expected is ...:
        assert found not in (None, "", [], {}), where
    elif isinstance(expected, dict):
        for name, entry in expected.items():
            assert entry is None or name in found, f"{where}.{name} in {found}"
            check(found.get(name), entry, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), f"{where}: {found}"
        for number, entry in enumerate(expected):
            check(found[number], entry, f"{where}[{number}]")
    else:
        assert found == expected, where


async def call(talk: Talk, path: str, params: dict[str, Any]) -> Any:
    """Call a typed method of the client; return its answer as it was sent."""
    root, names = talk.session.rpc, path.split(".")
    if names[0] == "server":
        root, names = talk.client.rpc, names[1:]
    method = root
    for name in names:
        method = getattr(method, name)
    annotations = inspect.signature(method).parameters
    arguments = []
    if "params" in annotations and (params or "None" not in str(annotations["params"].annotation)):
        kind = str(annotations["params"].annotation).partition(" ")[0].strip("'")
        arguments = [getattr(rpc, kind).from_dict(params)]
    answer = await method(*arguments)
    return answer.to_dict() if hasattr(answer, "to_dict") else answer


async def play(talk: Talk, step: Step, facts: dict[str, str]) -> None:
    if step[0] == "say":
        assert await talk.say("go") == "Done."
        return
    path, params, expected = step
    params, expected = fill(params, facts), fill(expected, facts)
    if isinstance(expected, str) and not expected.startswith("value:"):
        with pytest.raises(Exception, match=expected):
            await call(talk, path, params)
        return
    answer = await call(talk, path, params)
    if isinstance(expected, str):
        assert answer.value == expected.removeprefix("value:")
    elif expected is not ...:  # anything will do, also nothing
        check(answer, expected)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_typed_calls(sdk: Sdk, name: str) -> None:
    steps = SCENARIOS[name]
    (sdk.home / "skills" / "knots").mkdir(parents=True)
    (sdk.home / "skills" / "knots" / "SKILL.md").write_text(SKILL)
    options: dict[str, Any] = {
        "skill_directories": [str(sdk.home / "skills")],
        "custom_agents": AGENTS,
    }
    async with talking(sdk, replies_of(steps), **options) as talk:
        facts = {"cwd": str(sdk.cwd), "home": str(sdk.home), "id": talk.session.session_id}
        for step in steps:
            await play(talk, step, facts)
