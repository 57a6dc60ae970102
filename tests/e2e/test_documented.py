"""What the README and the first pages tell people to do works as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clikit import Cli, serving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
STARTED = (ROOT / "docs" / "getting-started" / "README.md").read_text()
INSTALL = ["pipx install .", "uv tool install .", "python3 -m pip install ."]


def test_the_first_thing_said_is_how_to_install() -> None:
    for page in (README, STARTED):
        first = page.index("## ")
        assert page[first:].startswith("## Install\n")
        assert all(command in page for command in INSTALL)


@pytest.mark.parametrize("command", INSTALL)
def test_the_program_can_be_installed_as_it_says(command: str, tmp_path: Path) -> None:
    program, *args = command.split()
    site = next(path for path in sys.path if path.endswith("site-packages"))
    env, folder = dict(os.environ), tmp_path / "bin"
    if program == "python3":
        program = sys.executable  # its packages are there: nothing need be fetched
        args += ["--no-build-isolation", "--no-deps", "--no-index", "--target", str(tmp_path)]
    elif program == "pipx":
        env |= {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(folder)}
    else:
        env |= {"UV_TOOL_DIR": str(tmp_path / "uv"), "UV_TOOL_BIN_DIR": str(folder)}
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: python3 -m pip install {program}")
    installed = subprocess.run(
        [program, *args], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    fetched = program != sys.executable
    if fetched and installed.returncode and re.search("(?i)network|connect", installed.stderr):
        pytest.skip(f"{program} cannot fetch packages here")
    assert installed.returncode == 0, installed.stderr
    ran = subprocess.run(
        [folder / "trimtab", "--version"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}:{site}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.startswith("Trimtab "), ran.stderr


async def test_the_python_example_is_a_program(cli: Cli) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (cli.cwd / "example.py").write_text(example)
    async with serving([{"text": "It steers large models."}]) as server:
        ran = await cli.use(server).run("example.py", program=sys.executable)
    assert ran.code == 0, ran.notes
    assert ran.text == "It steers large models.\nIt ended because of: end_turn\n"
