"""`trimtab bridge` as a person runs it, also with real Claude Code and Codex."""

import asyncio
import json
import signal
import sys
from typing import Any

import httpx
import pytest

from bridgekit import WIRES
from clikit import Cli, Outcome, serving
from programkit import FOREIGN

SHOW = (
    "import os, json, sys; json.dump({'env': dict(os.environ), 'in': sys.stdin.read()}, sys.stdout);"
    "sys.exit(7)"
)
ASK = """
import anthropic, openai
print(anthropic.Anthropic().messages.create(
    model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
).content[0].text)
print(openai.OpenAI().chat.completions.create(
    model="gpt-x", messages=[{"role": "user", "content": "Hi"}]
).choices[0].message.content)
print(openai.OpenAI().responses.create(model="gpt-x", input="Hi").output_text)
"""


def on_wire(cli: Cli, server: Any, wire: str) -> Cli:
    cli.use(server)
    if wire == "anthropic-messages":
        cli.env |= {
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": server.url,
        }
    elif wire == "openai-responses":
        cli.env["COPILOT_PROVIDER_WIRE_API"] = "responses"
    return cli


def calls_in(cli: Cli) -> list[dict[str, Any]]:
    (path,) = cli.logs()
    events = map(json.loads, path.read_text().splitlines())
    return [event["data"] for event in events if event["type"] == "trimtab.model_call"]


async def test_the_address_is_one_line_of_json_and_a_signal_ends_the_bridge(cli: Cli) -> None:
    async with serving(["ok"]) as server:
        process = await cli.use(server).start("bridge", "--json")
        assert process.stdout is not None
        line = json.loads(await asyncio.wait_for(process.stdout.readline(), 50))
        assert sorted(line) == ["key", "sessionId", "url"]
        async with httpx.AsyncClient() as client:
            answer = await client.post(
                line["url"] + "/v1/chat/completions",
                json={"model": "x", "messages": [{"role": "user", "content": "Hi"}]},
                headers={"authorization": "Bearer " + line["key"]},
            )
        assert answer.json()["choices"][0]["message"]["content"] == "ok"
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.wait_for(process.communicate(), 50)
        assert (process.returncode, out, err) == (0, b"", b"")
        (path,) = cli.logs()
        assert path.parent.name == line["sessionId"]
        assert json.loads(path.read_text().splitlines()[-1])["type"] == "session.shutdown"


async def test_a_command_has_the_address_its_own_streams_and_its_exit_code(cli: Cli) -> None:
    async with serving([]) as server:
        cli.use(server).env |= {"ANTHROPIC_API_KEY": "sk-ant-mine", "GH_TOKEN": "gho_mine"}
        program = (sys.executable, "-c", SHOW)
        outcome = await cli.run("bridge", "--", *program, stdin=b"typed")
    assert outcome.code == 7, outcome.notes
    shown = json.loads(outcome.text)
    assert shown["in"] == "typed"
    env = shown["env"]
    assert env["ANTHROPIC_BASE_URL"] + "/v1" == env["OPENAI_BASE_URL"]
    assert env["OPENAI_API_KEY"] == env["ANTHROPIC_AUTH_TOKEN"]
    assert env["OPENAI_API_KEY"].startswith("trimtab-lm-")
    for secret in ("sk-ant-mine", "gho_mine", "test-key-0123456789"):
        assert secret not in outcome.text
    assert env["OPENAI_API_KEY"] not in cli.logs()[0].read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_bridge_reaches_the_command(cli: Cli, number: signal.Signals) -> None:
    async with serving([]) as server:
        code = (
            "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL);"
            "print('ready', flush=True); time.sleep(60)"
        )
        process = await cli.use(server).start("bridge", "--", sys.executable, "-c", code)
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 50) == b"ready\n"
        process.send_signal(number)
        await asyncio.wait_for(process.communicate(), 50)
        assert process.returncode == 128 + number


async def test_the_packages_find_the_bridge_by_their_own_variables(cli: Cli) -> None:
    async with serving({"otherwise": "ok"}) as server:
        outcome = await cli.use(server).run("bridge", "--", sys.executable, "-c", ASK)
    assert (outcome.code, outcome.text) == (0, "ok\nok\nok\n"), outcome.notes
    assert [call["route"] for call in calls_in(cli)] == [
        "/v1/messages",
        "/v1/chat/completions",
        "/v1/responses",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--map", "nonsense"), "--map needs PATTERN=MODEL"),
        (("--max-budget-usd", "-1"), "must be a number above 0"),
        (("--deadline", "soon"), "--deadline needs a time"),
        (("--", "/no/such/program"), "cannot be started"),
        (("--max-budget-usd", "1"), "No price is known for the model scripted"),
    ],
)
async def test_wrong_arguments_are_one_sentence(cli: Cli, args: tuple[str, ...], said: str) -> None:
    async with serving([]) as server:
        outcome = await cli.use(server).run("bridge", *args)
    assert outcome.code == 2
    assert said in outcome.notes
    assert len(outcome.notes.strip().splitlines()) == 1


@pytest.mark.parametrize("command", [(), ("--", "sleep", "300")])
async def test_the_deadline_ends_the_server_and_its_command(
    cli: Cli, command: tuple[str, ...]
) -> None:
    async with serving([]) as server:
        outcome = await cli.use(server).run("bridge", "--deadline", "1s", *command)
    assert outcome.code == 6
    assert "Stopped at the deadline of 1 s." in outcome.notes
    lines = cli.logs()[0].read_text().splitlines()
    assert json.loads(lines[-1])["type"] == "session.shutdown"


async def test_a_port_in_use_is_one_sentence(cli: Cli) -> None:
    async with serving([]) as server:
        outcome = await cli.use(server).run("bridge", "--port", str(server.port))
    assert outcome.code == 2
    assert "choose another --port" in outcome.notes
    assert not cli.logs()


async def test_the_settings_name_the_default_model(cli: Cli) -> None:
    (cli.home / "settings.json").write_text('{"model": "from-settings"}')
    async with serving({"otherwise": "ok"}) as server:
        outcome = await cli.use(server).run("bridge", "--", sys.executable, "-c", ASK)
        assert outcome.code == 0, outcome.notes
        assert {sent.json["model"] for sent in server.requests} == {"from-settings"}


def check_run(cli: Cli, server: Any, outcome: Outcome, client: str) -> None:
    assert outcome.code == 0, outcome.text + outcome.notes
    assert "All done." in outcome.text
    calls = calls_in(cli)
    assert {call["status"] for call in calls} == {"success"}
    assert all(client in call["client"] for call in calls)
    assert sum(call["inputTokens"] for call in calls) == server.usage.input_tokens
    assert sum(call["outputTokens"] for call in calls) == server.usage.output_tokens
    assert any(b"hello-from-tool" in sent.body for sent in server.requests)


@pytest.mark.foreign("claude-code")
@pytest.mark.parametrize("wire", WIRES)
async def test_claude_code_works_with_tools_on_every_wire(cli: Cli, wire: str) -> None:
    command = {"command": "printf hello-%s from-tool", "description": "say"}
    replies = [
        {
            "text": "I look.",
            "reasoning": {"text": "Hm.", "opaque": "opaque-1", "encrypted": "encrypted-1"},
            "tools": [{"name": "Bash", "arguments": command, "id": "toolu_1"}],
        }
    ]
    async with serving({"replies": replies, "otherwise": "All done."}) as server:
        on_wire(cli, server, wire).env |= {
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        program = str(FOREIGN / "claude-code/node_modules/.bin/claude")
        outcome = await cli.run(
            "bridge", "--", program, "-p", "--dangerously-skip-permissions", stdin=b"go ahead"
        )
        check_run(cli, server, outcome, "claude-cli")


@pytest.mark.foreign("codex")
@pytest.mark.parametrize("wire", WIRES)
async def test_codex_works_with_tools_on_every_wire(cli: Cli, wire: str) -> None:
    code = "text(await tools.exec_command({cmd: 'printf hello-%s from-tool'}))"
    name = "exec" if wire == "openai-responses" else "functions__exec"
    call: dict[str, Any] = {"name": name, "arguments": {"input": code}, "id": "call_1"}
    if wire == "openai-responses":
        call |= {"kind": "custom", "arguments": code}
    replies = [{"text": "I look.", "tools": [call]}]
    async with serving({"replies": replies, "otherwise": "All done."}) as server:
        program = str(FOREIGN / "codex/node_modules/.bin/codex")
        flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        outcome = await on_wire(cli, server, wire).run(
            "bridge", "--", program, "exec", *flags, "-", stdin=b"go ahead"
        )
        check_run(cli, server, outcome, "codex")


@pytest.mark.foreign("claude-code")
async def test_claude_code_stops_at_a_used_up_limit(cli: Cli) -> None:
    async with serving({"otherwise": "All done."}) as server:
        cli.use(server)
        program = str(FOREIGN / "claude-code/node_modules/.bin/claude")
        outcome = await cli.run(
            "bridge", "--max-tokens", "1000", "--", program, "-p", stdin=b"go ahead"
        )
        assert outcome.code == 1
        assert "limit of the bridge is reached" in outcome.text + outcome.notes
        assert not server.requests


@pytest.mark.foreign("opencode")
async def test_opencode_finds_the_bridge_by_itself(cli: Cli) -> None:
    async with serving({"otherwise": "All done."}) as server:
        program = str(FOREIGN / "opencode/node_modules/.bin/opencode")
        outcome = await on_wire(cli, server, "anthropic-messages").run(
            "bridge", "--", program, "run", "go ahead"
        )
        assert outcome.code == 0, outcome.notes
        assert "All done." in outcome.text
        assert all("opencode" in call["client"] for call in calls_in(cli))


@pytest.mark.foreign("pi")
async def test_pi_finds_the_bridge_by_itself_and_keeps_its_sessions(cli: Cli) -> None:
    async with serving({"otherwise": "All done."}) as server:
        program = str(FOREIGN / "pi/node_modules/.bin/pi")
        outcome = await on_wire(cli, server, "anthropic-messages").run(
            "bridge", "--", program, "-p", stdin=b"go ahead"
        )
        assert outcome.code == 0, outcome.notes
        assert "All done." in outcome.text
        (call,) = calls_in(cli)
        assert call["inputTokens"] == server.usage.input_tokens
        assert list((cli.home.parent / ".pi/agent/sessions").rglob("*.jsonl"))
