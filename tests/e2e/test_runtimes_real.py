"""Real programs as runtimes, against the scripted model server."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, serving
from runtimekit import logged, use_real
from toolkit import is_running, until
from trimtab.providers.http_server import Exchange, HttpServer

COMMAND = "printf hello > made.txt; cat made.txt"
BASH = {"name": "Bash", "arguments": {"command": COMMAND, "description": "say"}, "id": "toolu_1"}
KEY = "sk-own-0123456789abcdef"


def codex_call(command: str) -> dict[str, Any]:
    code = f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}))"
    return {"name": "exec", "kind": "custom", "arguments": code, "id": "call_1"}


def script(*calls: dict[str, Any]) -> dict[str, Any]:
    replies = [{"text": "I look.", "tools": [call]} for call in calls]
    return {"replies": replies, "otherwise": "All done."}


def own_models(cli: Cli, runtime: str, server: Any) -> Cli:
    """Point a program at the scripted server by its own means."""
    use_real(cli, runtime)
    if runtime == "claude":
        cli.env |= {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        return cli
    folder = cli.home.parent / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        'model_provider = "mine"\n[model_providers.mine]\nname = "Mine"\n'
        f'base_url = "{server.base_url}"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    )
    cli.env["OPENAI_API_KEY"] = KEY
    return cli


def host_models(cli: Cli, runtime: str, server: Any) -> Cli:
    use_real(cli, runtime)
    cli.use(server)
    if runtime == "codex":
        cli.env["COPILOT_PROVIDER_WIRE_API"] = "responses"
    return cli


async def ask(cli: Cli, runtime: str, *flags: str, prompt: str = "do it") -> Outcome:
    return await cli.run(
        "-p", prompt, "--agent-runtime", runtime, "--output-format", "json", *flags
    )


def check_work(cli: Cli, outcome: Outcome, server: Any) -> None:
    """Check that the tool ran, that everything was recorded, and that no token is missing."""
    assert outcome.code == 0, outcome.text[-3000:] + outcome.notes
    (call,) = outcome.of("tool.execution_start")
    assert (call["toolName"], call["arguments"]["command"]) == ("bash", COMMAND)
    assert outcome.of("tool.execution_complete")[0]["success"] is True
    (changed,) = outcome.of("trimtab.workspace_changed")
    assert [path["path"] for path in changed["changes"]] == [str(cli.cwd / "made.txt")]
    texts = [message["content"] for message in outcome.of("assistant.message")]
    assert texts[0] == "I look."
    assert texts[-1] == "All done."
    tokens = outcome.result["usage"]["tokens"]
    assert tokens["input"] == server.usage.input_tokens
    assert tokens["output"] == server.usage.output_tokens
    assert KEY not in cli.logs()[0].read_text()


CALLS = {"claude": BASH, "codex": codex_call(COMMAND)}
BOTH = [
    pytest.param("claude", marks=pytest.mark.foreign("claude-code")),
    pytest.param("codex", marks=pytest.mark.foreign("codex")),
]


@pytest.mark.parametrize("runtime", BOTH)
async def test_a_real_runtime_works_with_its_own_models(cli: Cli, runtime: str) -> None:
    async with serving(script(CALLS[runtime])) as server:
        outcome = await ask(own_models(cli, runtime, server), runtime, "--allow-all")
        check_work(cli, outcome, server)


@pytest.mark.parametrize("runtime", BOTH)
async def test_a_real_runtime_works_with_the_models_of_the_host(cli: Cli, runtime: str) -> None:
    async with serving(script(CALLS[runtime])) as server:
        flags = ("--allow-all", "--runtime-models", "host")
        outcome = await ask(host_models(cli, runtime, server), runtime, *flags)
        check_work(cli, outcome, server)
        assert {call["purpose"] for call in logged(cli, "trimtab.model_call")} == {"bridge"}


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("runtime", BOTH)
async def test_a_real_runtime_works_in_the_sandbox(cli: Cli, runtime: str) -> None:
    (cli.home / "settings.json").write_text('{"sandbox": {"network": "on"}}')
    async with serving(script(CALLS[runtime])) as server:
        flags = ("--allow-all", "--runtime-models", "host", "--sandbox")
        outcome = await ask(host_models(cli, runtime, server), runtime, *flags)
        check_work(cli, outcome, server)


@pytest.mark.parametrize("runtime", BOTH)
async def test_a_real_runtime_goes_on_with_its_own_session(cli: Cli, runtime: str) -> None:
    async with serving({"otherwise": "All done."}) as server:
        own_models(cli, runtime, server)
        first = await ask(cli, runtime, "--allow-all", prompt="the first question")
        session = first.result["sessionId"]
        second = await cli.run(
            *("-p", "the second question", "--resume", session),
            *("--allow-all", "--output-format", "json"),
        )
        assert second.code == 0, second.notes
        assert b"the first question" in server.requests[-1].body
        assert b"the second question" in server.requests[-1].body


@pytest.mark.foreign("claude-code")
async def test_claude_code_is_denied_what_a_rule_denies_and_goes_on(cli: Cli) -> None:
    (cli.cwd / "secret.txt").write_text("hidden")
    read = {
        "name": "Read",
        "arguments": {"file_path": str(cli.cwd / "secret.txt")},
        "id": "toolu_2",
    }
    async with serving(script(BASH, read)) as server:
        own_models(cli, "claude", server)
        flags = ("--allow-tool", "shell", "--allow-tool", "write")
        outcome = await ask(cli, "claude", *flags, "--deny-tool", "read(secret.txt)")
        assert not any(b"hidden" in sent.body for sent in server.requests)
    last = outcome.of("tool.execution_complete")[-1]
    assert last["error"]["code"] == "denied"
    assert outcome.of("assistant.message")[-1]["content"] == "All done."
    assert outcome.code == 4


@pytest.mark.foreign("claude-code")
async def test_claude_code_may_run_only_what_is_allowed(cli: Cli) -> None:
    async with serving(script(BASH)) as server:
        outcome = await ask(own_models(cli, "claude", server), "claude")
    assert outcome.code == 4
    assert not (cli.cwd / "made.txt").exists()
    (done,) = outcome.of("tool.execution_complete")
    assert done["error"]["code"] == "denied"


@pytest.mark.parametrize("runtime", BOTH)
async def test_a_cancelled_real_runtime_leaves_no_process(cli: Cli, runtime: str) -> None:
    command = "echo $$ > started.pid; exec sleep 300"
    call = codex_call(command)
    if runtime == "claude":
        call = {**BASH, "arguments": {"command": command, "description": "wait"}}
    path = cli.cwd / "started.pid"
    async with serving(script(call)) as server:
        own_models(cli, runtime, server)
        process = await cli.start("-p", "go", "--agent-runtime", runtime, "--allow-all")
        await until(lambda: path.exists() and path.read_text().endswith("\n"))
        pid = int(path.read_text())
        assert is_running(pid)
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), 50)
        assert process.returncode == 130
        assert not is_running(pid)


@pytest.mark.parametrize("runtime", BOTH)
async def test_a_real_runtime_without_a_valid_key_exits_with_7(cli: Cli, runtime: str) -> None:
    failure = {
        "error": {
            "status": 401,
            "message": "invalid x-api-key",
            "headers": {"x-should-retry": "false"},
        }
    }
    async with serving({"otherwise": failure}) as server:
        outcome = await ask(own_models(cli, runtime, server), runtime, "--allow-all")
    assert outcome.code == 7, outcome.notes


@pytest.mark.foreign("claude-code")
async def test_a_used_up_budget_stops_claude_code_on_the_models_of_the_host(cli: Cli) -> None:
    async with serving({"otherwise": "All done."}) as server:
        flags = ("--allow-all", "--runtime-models", "host", "--max-tokens", "1000")
        outcome = await ask(host_models(cli, "claude", server), "claude", *flags)
        assert not server.requests
    assert outcome.code == 5, outcome.notes


def remove_others(cli: Cli) -> None:
    """Remove the logs that the real Copilot CLI wrote, which keeps its sessions beside ours."""
    for path in cli.logs():
        if b'"producer":"trimtab"' not in path.read_bytes():
            path.unlink()


OTHERS = [
    pytest.param("opencode", marks=pytest.mark.foreign("opencode")),
    pytest.param("pi", marks=pytest.mark.foreign("pi")),
    pytest.param("copilot", marks=pytest.mark.foreign("copilot")),
]


@pytest.mark.parametrize("runtime", OTHERS)
async def test_other_real_runtimes_work_and_resume_on_the_models_of_the_host(
    cli: Cli, runtime: str
) -> None:
    call = {"name": "bash", "arguments": {"command": COMMAND, "description": "say"}, "id": "call_1"}
    steps: list[Any] = [{"text": "I look.", "tools": [call]}]
    if runtime == "opencode":
        steps.insert(0, "A title")
    async with serving({"replies": steps, "otherwise": "All done."}) as server:
        host_models(cli, runtime, server)
        flags = ("--allow-all", "--runtime-models", "host")
        outcome = await ask(cli, runtime, *flags, prompt="the first question")
        check_work(cli, outcome, server)
        again = await cli.run(
            *("-p", "the second question", "--resume", outcome.result["sessionId"]),
            *("--allow-all", "--output-format", "json"),
        )
        assert again.code == 0, again.notes
        remove_others(cli)
        assert any(
            b"the first question" in sent.body and b"the second question" in sent.body
            for sent in server.requests
        )


@asynccontextmanager
async def serving_gemini() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve Google's protocol: first a call, then a text. Yields the address and the requests."""
    bodies: list[bytes] = []

    async def handle(exchange: Exchange) -> None:
        bodies.append(exchange.request.body)
        request = json.loads(exchange.request.body)
        parts = [part for content in request["contents"] for part in content["parts"]]
        part: dict[str, Any] = {"text": "All done."}
        if not request.get("tools"):
            part = {"text": "{}"}
        elif not any("functionResponse" in sent for sent in parts):
            args = {"command": COMMAND, "description": "say"}
            part = {"functionCall": {"name": "run_shell_command", "args": args}}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        content = {"parts": [part], "role": "model"}
        answer = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
        }
        data = json.dumps(answer).encode()
        if "stream" in exchange.request.path:
            await exchange.answer(200, b"data: " + data + b"\r\n\r\n", kind="text/event-stream")
        else:
            await exchange.answer(200, data)

    server = HttpServer(handle)
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}", bodies
    finally:
        await server.stop()


@pytest.mark.foreign("gemini")
async def test_gemini_cli_works_and_resumes_with_its_own_models(cli: Cli) -> None:
    folder: Path = cli.home.parent / ".gemini"
    folder.mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(settings))
    use_real(cli, "gemini")
    async with serving_gemini() as (url, bodies):
        cli.env |= {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}
        outcome = await ask(cli, "gemini", "--allow-all", prompt="the first question")
        assert outcome.code == 0, outcome.notes
        (call,) = outcome.of("tool.execution_start")
        assert (call["toolName"], call["arguments"]["command"]) == ("bash", COMMAND)
        assert outcome.of("assistant.message")[-1]["content"] == "All done."
        tokens = outcome.result["usage"]["tokens"]
        assert (tokens["input"], tokens["output"]) == (100 * len(bodies), 10 * len(bodies))
        again = await cli.run(
            *("-p", "the second question", "--resume", outcome.result["sessionId"]),
            *("--allow-all", "--output-format", "json"),
        )
        assert again.code == 0, again.notes
        assert b"the first question" in bodies[-1]
        assert b"the second question" in bodies[-1]
