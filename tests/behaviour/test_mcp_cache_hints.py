"""Lists of servers are fetched again when the server says that they no longer hold."""

from pathlib import Path

import pytest

from clikit import Cli, serving
from mcpkit import configure, entry, methods


@pytest.mark.parametrize(("mode", "fetched"), [("holding", 1), ("fleeting", 2), ("stateless", 2)])
async def test_a_list_that_holds_is_not_fetched_by_the_next_session(
    cli: Cli, tmp_path: Path, mode: str, fetched: int
) -> None:
    log = tmp_path / "heard.jsonl"
    configure(cli.home / "mcp-config.json", small=entry(mode, log))
    for word in ("one", "two"):
        call = {"tools": [{"name": "small-echo", "arguments": {"text": word}}]}
        async with serving([call, "done"]) as model:
            outcome = await cli.use(model).ask("go")
        assert outcome.of("tool.execution_complete")[0]["result"]["content"] == word
    assert methods(log).count("tools/list") == fetched
    assert methods(log).count("tools/call") == 2
