"""Marks for a service that keeps prompts: what stands before one is sent again as it was."""

import json
from itertools import pairwise
from typing import Any

import pytest

from clikit import Cli, bash, serving


def marked_prefix(body: dict[str, Any]) -> list[Any]:
    """The messages up to the last mark, without marks."""
    plain: list[Any] = []
    last = 0
    for message in body["messages"]:
        for block in message["content"]:
            marked = block.pop("cache_control", None)
            plain.append((message["role"], json.dumps(block, sort_keys=True)))
            last = len(plain) if marked else last
    return plain[:last]


def all_blocks(body: dict[str, Any]) -> list[Any]:
    return [
        (message["role"], json.dumps({k: v for k, v in block.items() if k != "cache_control"}))
        for message in body["messages"]
        for block in message["content"]
    ]


@pytest.mark.proves("AMPROMPT-03")
async def test_what_a_service_keeps_is_sent_again_unchanged(cli: Cli) -> None:
    replies = [{"tools": [bash("echo one")]}, {"text": "First."}, {"text": "Second."}]
    replies += [{"text": "They said hello."}, {"text": "Third."}]
    async with serving(replies) as server:
        cli.use(server).env["COPILOT_PROVIDER_TYPE"] = "anthropic"
        for words, flags in (("a", ()), ("b", ("--continue",))):
            assert (await cli.ask(words, *flags)).code == 0
        compacted = await cli.run("-p", "/compact", "--continue")
        assert compacted.code == 0, compacted.notes
        assert (await cli.ask("c", "--continue")).code == 0
        bodies = [one.json for one in server.requests]
    for before, after in pairwise(bodies[:3]):
        kept = [(role, json.loads(block)) for role, block in marked_prefix(before)]
        again = [(role, json.loads(block)) for role, block in all_blocks(after)]
        assert kept, "a mark is set"
        assert again[: len(kept)] == kept
    last = bodies[-1]
    assert last["system"] == bodies[0]["system"]
    assert last["tools"] == bodies[0]["tools"]
    assert last["system"][-1]["cache_control"] == {"type": "ephemeral"}
    texts = [block.get("text", "") for one in last["messages"] for block in one["content"]]
    summary = next(n for n, text in enumerate(texts) if "They said hello." in text)
    assert summary < len(texts) - 1, "the summary stands before what is new"
    assert "cache_control" in json.dumps(last["messages"])
