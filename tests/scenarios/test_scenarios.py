"""Recorded sessions come to what they came to before; see `scenariokit` for updating them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scenariokit


@pytest.mark.proves("AMREC-05")
@pytest.mark.parametrize("name", scenariokit.NAMES)
async def test_a_recorded_session_comes_to_what_is_expected(name: str) -> None:
    assert await scenariokit.replay(name) == scenariokit.expected(name)


@pytest.mark.proves("AMREC-05")
def test_one_command_tells_of_a_regression_and_another_accepts_it(tmp_path: Path) -> None:
    shutil.copy(scenariokit.__file__, tmp_path)
    shutil.copytree(scenariokit.FOLDER / "fix", tmp_path / "scenarios/fix")
    golden = tmp_path / "scenarios/fix/expected.jsonl"
    before = golden.read_text()
    changed = [json.loads(line) for line in before.splitlines()]
    changed[-1]["files"] = {}
    golden.write_text("\n".join(map(json.dumps, changed)) + "\n")

    def run(*args: str) -> tuple[int, str]:
        command = [sys.executable, str(tmp_path / "scenariokit.py"), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    assert run() == (1, "fix differs\n1 scenarios, 1 differ\n")
    assert run("--update") == (os.EX_OK, "1 scenarios, 0 differ\n")
    assert golden.read_text() == before
    assert run()[0] == os.EX_OK
