"""The agents that come with the program are data, not code."""

import os

import pytest
import yaml

import trimtab.customize
from trimtab.customize.agents import find_agents


@pytest.mark.proves("PKG-02")
def test_every_built_in_agent_is_a_file_of_its_own() -> None:
    folder = os.path.join(os.path.dirname(trimtab.customize.__file__), "builtin")
    files = {name.removesuffix(".agent.yaml"): name for name in os.listdir(folder)}
    assert {"explore", "task", "code-review"} <= set(files)
    found = find_agents([]).agents
    assert set(found) == set(files)
    for name, file in files.items():
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            data = yaml.safe_load(stream)
        assert data["name"] == name
        assert found[name].prompt == data["prompt"].strip()
        assert found[name].description == " ".join(data["description"].split())
