"""One message through everything that shapes it, in the order of the reference's own summary."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from customizekit import write
from gitkit import git
from trimtab import Runtime, SessionOptions
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.options import Client, CustomizationOptions, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.testing import Script, ScriptedProvider

IN_THE_PROMPT = (
    *(
        "You are Trimtab",
        "Code scanning is on",
        "USER TEXT",
        "REPO TEXT",
        "AGENTS TEXT",
        "RULES TEXT",
    ),
    *("CWD TEXT", "CHILD TEXT", "ORGANIZATION TEXT"),
)


def furnish(folder: Path) -> Path:
    """A person's home and a repository with something of every kind; returns the folder to work in."""
    home, repo = folder / "home", folder / "repo"
    work = repo / "app"
    flow = folder / "flow.txt"
    write(home / "copilot-instructions.md", "USER TEXT")
    write(home / "config.json", '{"feature_flags": {"enabled": ["CODE_SCANNING"]}}')
    write(home / "settings.json", '{"enableChildInstructions": true, "model": "by-settings"}')
    write(repo / ".github/copilot-instructions.md", "REPO TEXT")
    write(repo / "AGENTS.md", "AGENTS TEXT")
    write(repo / ".github/instructions/all.instructions.md", "---\napplyTo: '**'\n---\nRULES TEXT")
    write(work / "AGENTS.md", "CWD TEXT")
    write(work / "part/AGENTS.md", "CHILD TEXT")
    write(repo / ".github/skills/one/SKILL.md", "---\ndescription: SKILL TEXT\n---\nDo it.")
    write(repo / ".claude/commands/two.md", "Do it.")
    write(repo / ".github/agents/three.agent.md", "---\ndescription: AGENT TEXT\n---\nDo it.")

    def say(word: str) -> list[dict[str, Any]]:
        return [{"type": "command", "bash": f"cat > /dev/null; echo {word} >> {flow}"}]

    names = ("userPromptSubmitted", "preToolUse", "postToolUse")
    hooks = {"version": 1, "hooks": {name: say(name) for name in names}}
    write(repo / ".github/hooks/all.json", json.dumps(hooks))
    git(repo, "init", "-q")
    return work


@pytest.mark.needs("git")
@pytest.mark.proves("FLOW-01", "FLOW-03", "HOOK-18")
async def test_a_message_passes_everything_in_the_order_of_the_reference(tmp_path: Path) -> None:
    work, flow = furnish(tmp_path), tmp_path / "flow.txt"
    command = {"command": f"echo tool >> {flow}", "description": "x"}
    replies = [{"tools": [{"name": "bash", "arguments": command}]}, "done"]
    provider = ScriptedProvider(Script.of(replies))
    env = {"COPILOT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")}
    runtime = Runtime(env={**env, "PATH": os.environ["PATH"]}, provider=provider)
    seen: list[str] = []

    def note(word: str) -> None:
        with flow.open("a") as file:
            file.write(f"{word}\n")

    def on_event(event: Event, _: bytes) -> None:
        seen.append(event.type)
        if event.type in ("system.message", "assistant.turn_start", "trimtab.message_telemetry"):
            note(event.type)

    async def ask(_request_id: str, _request: dict[str, Any]) -> Answer:
        note("permission")
        return Answer(kind="approve-once")

    live = await runtime.create(
        SessionOptions(
            cwd=str(work),
            trust_folder=True,
            customize=CustomizationOptions(organization_instructions="ORGANIZATION TEXT"),
            permissions=PermissionOptions(),
        ),
        Client(on_event=on_event, ask=ask),
    )
    try:
        await live.ask("go")
    finally:
        await live.close()
    request = provider.requests[0]
    places = [request.system.lower().find(text.lower()) for text in IN_THE_PROMPT]
    assert -1 not in places, dict(zip(IN_THE_PROMPT, places, strict=True))
    assert places[2:] == sorted(places[2:])
    assert places[0] < places[2]
    assert "SKILL TEXT" in request.system
    task = next(tool for tool in request.tools if tool.name == "task")
    assert "AGENT TEXT" in task.description
    loaded = [seen.index(name) for name in ("session.skills_loaded", "session.custom_agents_updated",
              "session.tools_updated", "user.message") if name in seen]  # fmt: skip
    assert len(loaded) >= 3
    assert flow.read_text().split() == [
        "system.message",
        "userPromptSubmitted",
        "assistant.turn_start",
        "preToolUse",
        "permission",
        "tool",
        "postToolUse",
        "assistant.turn_start",
        "trimtab.message_telemetry",
    ]
    assert seen.index("trimtab.message_telemetry") < seen.index("session.idle")
