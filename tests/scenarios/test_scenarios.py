"""Recorded sessions come to what they came to before; `trimtab simulate` plays and updates them."""

import json
import shutil
from pathlib import Path

import pytest

from clikit import Cli
from trimtab.testing.differences import find_differences
from trimtab.testing.scenarios import find_scenarios, run_scenario

FOLDER = Path(__file__).parent
SCENARIOS = {scenario.name: scenario for scenario in find_scenarios([str(FOLDER)])}


@pytest.mark.proves("AMREC-05")
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_recorded_session_comes_to_what_is_expected(name: str) -> None:
    expected = SCENARIOS[name].read_expected()
    assert expected is not None
    assert find_differences(expected, await run_scenario(SCENARIOS[name])) == []


@pytest.mark.proves("AMREC-05")
async def test_one_command_tells_of_a_regression_and_another_accepts_it(cli: Cli) -> None:
    shutil.copytree(FOLDER / "fix", cli.cwd / "sets/fix")
    events, after = cli.cwd / "sets/fix/expected.jsonl", cli.cwd / "sets/fix/after/shop.py"
    before = events.read_text()
    assert (await cli.run("simulate", "sets")).code == 0
    lines = before.splitlines()
    changed = json.loads(lines[6])
    changed["data"]["content"] = "I guess first."
    events.write_text("\n".join([*lines[:6], json.dumps(changed), *lines[7:-2], lines[-1]]) + "\n")
    after.write_text("def total() -> int:\n    return 7\n")
    told = await cli.run("simulate", "sets")
    assert told.code == 1
    shown = [line.strip() for line in told.text.splitlines()]
    assert shown[0] == "differs sets/fix"
    at = shown.index("~ event 7 assistant.message.content")
    assert shown[at + 1 : at + 3] == ['- "I guess first."', '+ "I look first."']
    assert [line for line in shown if line.startswith("+ event")]
    at = shown.index("~ file shop.py")
    assert "-    return 7" in shown[at:]
    assert shown[-1] == "1 scenario, 1 differ"
    assert json.loads((await cli.run("simulate", "--json")).text)["ok"] is False
    updated = await cli.run("simulate", "--update")
    assert updated.code == 0
    assert updated.text.startswith("written sets/fix\n")
    assert "~ file shop.py" in updated.text, "what is accepted is shown"
    assert updated.text.endswith("1 scenario, 0 differ, 1 written\n")
    assert events.read_text() == before
    assert "sum(prices)" in after.read_text()
    again = await cli.run("simulate", "--update")
    assert again.text == "ok      sets/fix\n1 scenario, 0 differ, 0 written\n"


async def test_a_scenario_can_be_written_by_hand(cli: Cli) -> None:
    folder = cli.cwd / "greet"
    (folder / "files").mkdir(parents=True)
    (folder / "files/name.txt").write_text("Ada\n")
    (folder / "scenario.json").write_text(json.dumps({"prompts": ["greet"], "allow": ["write"]}))
    (folder / "answers.yaml").write_text(
        "- tools:\n  - name: create\n    arguments: {path: hello.txt, file_text: Hello}\n- text: Done.\n"
    )
    never = await cli.run("simulate", "greet")
    assert never.code == 1
    assert "nothing is expected yet" in never.text
    assert (await cli.run("simulate", "greet", "--update")).text.startswith("written greet\n")
    assert (folder / "after/hello.txt").read_text() == "Hello"
    assert (folder / "after/name.txt").read_text() == "Ada\n"
    assert (await cli.run("simulate")).text.endswith("1 scenario, 0 differ\n")
    (folder / "answers.yaml").write_text("- text: Done.\n")
    broken = await cli.run("simulate")
    assert broken.code == 1
    assert "- file hello.txt is missing" in broken.text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"scenario.json": "{"}, "cannot be used"),
        ({"scenario.json": '{"nope": 1}'}, "cannot be used"),
        ({"scenario.json": "{}"}, "has no answers"),
        ({"scenario.json": "{}", "answers.yaml": "- text: x\n"}, "has no prompt"),
    ],
)
async def test_a_scenario_that_cannot_be_played_says_why(
    cli: Cli, files: dict[str, str], said: str
) -> None:
    (cli.cwd / "x").mkdir()
    for name, text in files.items():
        (cli.cwd / "x" / name).write_text(text)
    outcome = await cli.run("simulate", "x")
    assert outcome.code == 2
    assert said in outcome.notes


async def test_answers_that_run_out_are_a_difference_not_a_crash(cli: Cli) -> None:
    folder = cli.cwd / "x"
    folder.mkdir()
    (folder / "scenario.json").write_text('{"prompts": ["one", "two"]}')
    (folder / "answers.yaml").write_text("- text: x\n- text: y\n")
    assert (await cli.run("simulate", "--update")).code == 0
    (folder / "answers.yaml").write_text("- text: x\n")
    outcome = await cli.run("simulate")
    assert outcome.code == 1
    assert "The script has no reply left" in outcome.text
