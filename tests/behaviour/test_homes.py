"""One base directory for everything: by variable, by flag, and the same for every part."""

import json
from pathlib import Path

import pytest

from clikit import Cli, serving


@pytest.mark.proves("PATH-04")
async def test_config_dir_moves_settings_and_sessions(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text('{"model": "from-elsewhere"}')
    (cli.home / "settings.json").write_text('{"model": "from-home"}')
    async with serving(["hello"]) as server:
        cli.use(server)
        outcome = await cli.ask("hi", "--config-dir", str(elsewhere), env={"COPILOT_MODEL": ""})
        assert server.requests[0].json["model"] == "from-elsewhere"
    assert outcome.code == 0, outcome.notes
    assert not (cli.home / "session-state").exists()
    (log,) = elsewhere.glob("session-state/*/events.jsonl")
    assert json.loads(log.read_text().splitlines()[0])["type"] == "session.start"


@pytest.mark.proves("PATH-05")
async def test_every_part_sees_the_same_directories(tmp_path: Path) -> None:
    """What one command writes, the others find: the run, the list, the models, the transcript."""
    cli = Cli(tmp_path)
    del cli.env["COPILOT_HOME"]
    cli.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    cli.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    registry = tmp_path / "config" / ".copilot" / "providers.json"
    registry.parent.mkdir(parents=True)
    async with serving(["hello"]) as server:
        provider = {"name": "here", "baseUrl": server.base_url, "defaultModel": "scripted"}
        registry.write_text(json.dumps({"providers": [provider], "default": "here/scripted"}))
        ran = await cli.ask("hi")
        assert ran.code == 0, ran.notes
        listed = await cli.run("sessions", "list", "--json")
        models = await cli.run("models", "--json")
        shown = await cli.run("sessions", "show", ran.result["sessionId"])
    state = tmp_path / "state" / ".copilot"
    (log,) = state.glob("session-state/*/events.jsonl")
    assert log.parent.name == ran.result["sessionId"]
    assert ran.result["sessionId"] in listed.text
    assert "here/scripted" in models.text
    assert "hello" in shown.text
    assert not (tmp_path / ".copilot").exists()
