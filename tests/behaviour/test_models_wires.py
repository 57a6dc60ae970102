"""The same conversation over every wire: what a service speaks never reaches the agent's events."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving

WIRES = {
    "chat": {"COPILOT_PROVIDER_TYPE": "openai"},
    "responses": {"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_WIRE_API": "responses"},
    "messages": {"COPILOT_PROVIDER_TYPE": "anthropic"},
}
SCRIPT = [
    {
        "text": "I will look.",
        "tools": [bash("echo one")],
        "usage": {"input": 900, "output": 40, "cached": 100},
    },
    {"text": "It ran.", "usage": {"input": 1000, "output": 9, "cached": 900}},
]


def shape(value: Any) -> Any:
    """An event without what differs between any two runs."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items() if not k.lower().endswith(CHANGING)}
    return [shape(one) for one in value] if isinstance(value, list) else value


CHANGING = ("id", "ids", "timestamp", "duration", "ms", "time", "transformedcontent", "phase")


@pytest.mark.proves("AMLMS-05", "AMLMS-07")
async def test_every_wire_gives_the_same_events_and_presents_the_key(tmp_path: Path) -> None:
    nonce = "vscode-lm-1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    seen: dict[str, list[str]] = {}
    for name, variables in WIRES.items():
        cli = Cli(tmp_path / name)
        async with serving(SCRIPT) as server:
            cli.use(server)
            url = server.url if name == "messages" else server.base_url
            own = {"COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_API_KEY": nonce}
            outcome = await cli.ask("go", env=variables | own)
            assert outcome.code == 0, outcome.notes
            for request in server.requests:
                assert nonce in str(request.headers)
                assert nonce.encode() not in request.body
        assert nonce not in outcome.text
        stored = [json.loads(line) for line in cli.logs()[0].read_text().splitlines()]
        durable = [one for one in stored if not one["type"].startswith(("session.", "system."))]
        seen[name] = [json.dumps(shape(one), sort_keys=True) for one in durable]
    assert seen["chat"] == seen["responses"]
    assert seen["chat"] == seen["messages"]
