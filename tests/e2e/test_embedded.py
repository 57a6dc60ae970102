"""The real embedded model at work: fetched, verified, and given the bundled example."""

import os
from pathlib import Path

import pytest

from clikit import Cli


@pytest.fixture(scope="session")
def weights() -> str:
    """The model file; fetched once into the user's cache (1.1 GB) and checked by its hash."""
    from trimtab.providers.embedded.pull import pull

    return pull(os.environ, lambda *_: None)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_embedded_model_solves_the_bundled_example(cli: Cli, weights: str) -> None:
    process = await cli.start(
        "demo", "--output-format", "json", env={"TRIMTAB_LOCAL_MODEL": weights}
    )
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
