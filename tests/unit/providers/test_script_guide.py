"""The examples of the guide are valid and do what it says."""

import re
from pathlib import Path

import pytest

from trimtab.providers.script import Step
from trimtab.testing import Script

GUIDE = (Path(__file__).parents[3] / "docs/guides/scripted-model.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL))
def test_every_example_is_a_valid_script(example: str) -> None:
    assert Script.parse(example).replies


def test_every_key_of_a_reply_is_described() -> None:
    table = GUIDE.partition("## Write a script")[2].partition("###")[0]
    described = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert described == set(Step.__struct_encode_fields__)
