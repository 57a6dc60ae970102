"""The layers: an import that goes up breaks `make check`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VIOLATIONS = {
    "contracts/ids.py": "from trimtab.runtime import live",
    "runtime/live.py": "from trimtab.transports.tui import app",
    "host/part_fold.py": "from trimtab.runtime import live",
    "transports/acp/forms.py": "from trimtab.transports.tui import app",
}


@pytest.mark.proves("VSC-01")
def test_an_import_of_a_higher_layer_breaks_the_build(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src" / "trimtab",
        tmp_path / "trimtab",
        ignore=shutil.ignore_patterns("__pycache__", "*.json", "*.md"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, line in VIOLATIONS.items():
        file = tmp_path / "trimtab" / name
        file.write_text(f"{file.read_text(encoding='utf-8')}\n\n{line}  # noqa\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = " ".join(done.stdout.split())
    for broken in (
        "trimtab.contracts is not allowed to import trimtab.runtime",
        "trimtab.runtime is not allowed to import trimtab.transports",
        "trimtab.host.part_fold is not allowed to import trimtab.runtime",
        "trimtab.transports.acp is not allowed to import trimtab.transports.tui",
    ):
        assert broken in told, done.stdout
    assert "lint-imports" in (ROOT / "Makefile").read_text(encoding="utf-8")
