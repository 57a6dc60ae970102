"""Failed runs in JSON mode, classified as published harnesses for Copilot CLI classify them."""

import json
import re
from typing import Any

import pytest

from clikit import Cli, Outcome, serving

WIRES = {
    "openai-chat": {"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_WIRE_API": "completions"},
    "openai-responses": {
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "responses",
    },
    "anthropic": {"COPILOT_PROVIDER_TYPE": "anthropic"},
}

# The patterns of the `minions` harness, in the order in which it tries them: the first version
# with support for Copilot CLI, and a later one.
EARLY = {
    "auth-failure": r"not authenticated|copilot login|401|403",
    "rate-limit": r"rate limit|too many requests|429",
    "unknown-model": r"unknown model|model not found|model.*invalid",
    "crash": r"internal error|panic|uncaught",
}
LATE = {
    "auth-failure": (
        r"not authenticated|copilot login|please.*log.*in|\bunauthorized\b"
        r"|\bstatus(?:\s+code)?\s*[:=]?\s*(?:401|403)\b|\b(?:401\s+unauthorized|403\s+forbidden)\b"
    ),
    "unknown-model": (
        r"unknown\s+model|model\s+not\s+found|invalid\s+model|model_not_found"
        r"|400[^a-z]+(?:bad\s+request|invalid|model)|model.*\b400\b"
    ),
    "overloaded": (
        r"overloaded_error|service[_ ]unavailable|model.*(?:unavailable|overloaded)|\b503\b"
    ),
    "rate-limit": r"rate limit|too many requests|\b429\b",
    "budget-exceeded": r"budget.*exceed|premium.*limit.*reach|quota.*exceed",
    "crash": r"internal error|panic|uncaught|copilot.*crashed|fatal: copilot",
}


def error_texts(outcome: Outcome) -> str:
    """The text that the harness searches: lines that are not JSON, and `error` texts of those."""
    texts = []
    for line in (outcome.text + "\n" + outcome.notes).split("\n"):
        if not line.strip():
            continue
        if not line.startswith("{"):
            texts.append(line.strip())
            continue
        event: dict[str, Any] = json.loads(line)
        data = event.get("data") or {}
        if event.get("type") == "error" or event.get("error") or data.get("error"):
            values = [event.get(key) for key in ("error", "message", "stderr", "result")]
            values += [data.get(key) for key in ("error", "message", "stderr")]
            texts += [value for value in values if isinstance(value, str)]
    return "\n".join(texts)


def classify(text: str, patterns: dict[str, str]) -> str | None:
    found = (kind for kind, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE))
    return next(found, None)


# As the vendors word them.
CASES = {
    "401": ("auth-failure", 7, {"status": 401, "message": "Incorrect API key provided"}),
    "403": ("auth-failure", 7, {"status": 403, "message": "Your account is not active"}),
    "429": ("rate-limit", 8, {"status": 429, "message": "Slow down, please"}),
    "404 of OpenAI": (
        "unknown-model",
        8,
        {"status": 404, "message": "The model `x` does not exist", "code": "model_not_found"},
    ),
    "404 of Anthropic": (
        "unknown-model",
        8,
        {
            "status": 404,
            "body": {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}},
        },
    ),
    "404 of Ollama": ("unknown-model", 8, {"status": 404, "message": "model 'x' not found"}),
    "404 without words": ("unknown-model", 8, {"status": 404, "body": ""}),
    "400 of Copilot": (
        "unknown-model",
        8,
        {
            "status": 400,
            "message": "The requested model is not supported.",
            "code": "model_not_supported",
        },
    ),
    "400 of OpenRouter": (
        "unknown-model",
        8,
        {"status": 400, "body": {"error": {"message": "x is not a valid model ID", "code": 400}}},
    ),
    "400 of DeepSeek": ("unknown-model", 8, {"status": 400, "message": "Model Not Exist"}),
    "400 of Mistral": (
        "unknown-model",
        8,
        {
            "status": 400,
            "body": {"object": "error", "message": "Invalid model: x", "type": "invalid_model"},
        },
    ),
    "400 for another reason": (
        None,
        8,
        {"status": 400, "message": "Unsupported parameter: 'n' is not supported with this one"},
    ),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", CASES)
async def test_a_harness_classifies_a_failed_call_by_what_stderr_says(
    cli: Cli, name: str, wire: str
) -> None:
    wanted, code, failure = CASES[name]
    async with serving([{"error": failure, "repeat": "forever"}]) as server:
        outcome = await cli.use(server).ask("go", env=WIRES[wire])
    assert outcome.code == code
    assert outcome.result["error"]["message"] in outcome.notes
    assert outcome.notes.count("\n") == 1
    assert f"status {failure['status']}" in outcome.notes
    assert classify(outcome.notes, EARLY) == wanted
    text = error_texts(outcome)
    assert classify(text, EARLY) == wanted
    assert classify(text, LATE) == wanted


async def test_a_model_that_the_service_does_not_list_is_an_unknown_model(cli: Cli) -> None:
    failure = {"error": {"status": 404, "body": ""}, "repeat": "forever"}
    script = {"replies": [failure], "models": ["scripted-large", "scripted-small"]}
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--model", "scripted-larg")
    assert outcome.code == 8
    assert outcome.notes.count("\n") == 1
    assert "did you mean scripted-large" in outcome.notes
    assert classify(outcome.notes, EARLY) == "unknown-model"


async def test_a_run_that_succeeds_in_json_mode_writes_nothing_on_stderr(cli: Cli) -> None:
    async with serving(["Hello."]) as server:
        outcome = await cli.use(server).ask("go")
    assert (outcome.code, outcome.notes) == (0, "")


async def test_a_message_of_many_lines_is_one_line_on_stderr(cli: Cli) -> None:
    failure = {"status": 400, "body": 'first\nsecond\r\n\x1b[31mthird\n{"type": 1}'}
    async with serving([{"error": failure}]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 8
    assert outcome.notes.count("\n") == 1
    assert "\x1b" not in outcome.notes
    assert "first second third" in outcome.notes
