"""The real embedded model at work on the bundled example."""

import os
from pathlib import Path

import pytest

from clikit import Cli
from trimtab.providers.embedded.weights import find_weights


@pytest.mark.foreign("embedded model")
@pytest.mark.timeout(900)
async def test_the_embedded_model_solves_the_bundled_example(cli: Cli, tmp_path: Path) -> None:
    weights = find_weights(os.environ)
    assert weights is not None
    env = {"TRIMTAB_LOCAL_MODEL": weights, "TMPDIR": str(tmp_path)}
    process = await cli.start("demo", "--keep", "--output-format", "json", env=env)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    notes = err.decode()
    project = Path(
        next(
            line.split(maxsplit=1)[1] for line in notes.splitlines() if line.startswith("Project:")
        )
    )
    assert (
        "full - full" in (project / "prices.py").read_text()
        or "1 -" in (project / "prices.py").read_text()
    )
    assert b"embedded_model" in out
    assert b'"model":"local"' in out


async def test_without_any_model_the_error_says_how_to_get_one(cli: Cli) -> None:
    outcome = await cli.run("-p", "hi", "--output-format", "json")
    assert outcome.code == 7
    assert "models pull local" in outcome.result["error"]["message"]
