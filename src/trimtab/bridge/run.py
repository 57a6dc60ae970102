"""Starts a command in an environment that points it at the bridge."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

from trimtab.bridge.server import Bridge
from trimtab.contracts.errors import ConfigurationError
from trimtab.workspace.environment import find_keys

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_TERM_SECONDS = 2.0
KEY_VARIABLE = "TRIMTAB_BRIDGE_KEY"
"""The variable in which programs find the key of the bridge."""
_PROVIDER = "trimtab"


def command_environment(
    env: Mapping[str, str], bridge: Bridge, program: str, folder: str
) -> dict[str, str]:
    """Return an environment that points a program at the bridge, without keys of services.

    `folder` is for files of programs that take no address from a variable.
    """
    model = bridge.default_model
    base = f"{bridge.url}/v1"
    dropped = {*find_keys(env), "ANTHROPIC_MODEL", "OPENAI_ORGANIZATION", "OPENAI_ORG_ID"}
    kept = {name: value for name, value in env.items() if name not in dropped}
    return {
        **kept,
        KEY_VARIABLE: bridge.key,
        "ANTHROPIC_BASE_URL": bridge.url,
        # Claude Code asks a person about an unknown API key, but not about a token.
        "ANTHROPIC_AUTH_TOKEN": bridge.key,
        "OPENAI_BASE_URL": base,
        "OPENAI_API_KEY": bridge.key,
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_BASE_URL": base,
        "COPILOT_PROVIDER_API_KEY": bridge.key,
        "COPILOT_MODEL": model,
        "OPENCODE_CONFIG_CONTENT": json.dumps(_opencode(base, model)),
        **(_prepare_pi(folder, env, base, model) if program == "pi" else {}),
    }


def command_arguments(command: Sequence[str], bridge: Bridge) -> list[str]:
    """Return the command, with arguments for programs that read no variables."""
    if os.path.basename(command[0]) not in {"codex", "codex.js"}:
        return list(command)
    return [command[0], *codex_flags(bridge.url), *command[1:]]


def codex_flags(url: str) -> list[str]:
    """Return the flags with which Codex uses the bridge at an address."""
    address = f'name="Trimtab",base_url="{url}/v1"'
    table = f'{{{address},env_key="{KEY_VARIABLE}",wire_api="responses"}}'
    settings = [f"model_provider={_PROVIDER}", f"model_providers.{_PROVIDER}={table}"]
    return [word for setting in settings for word in ("-c", setting)]


def _prepare_pi(folder: str, env: Mapping[str, str], base: str, model: str) -> dict[str, str]:
    """Make a folder like pi's own, with all that is in it, in which the bridge is the provider."""
    home = env.get("HOME", "")
    own = env.get("PI_CODING_AGENT_DIR") or os.path.join(home, ".pi", "agent")
    os.makedirs(os.path.join(own, "sessions"), exist_ok=True)
    written: dict[str, dict[str, object]] = {
        "models.json": _pi_models(base, model),
        "settings.json": {"defaultProvider": _PROVIDER, "defaultModel": model},
    }
    for name in os.listdir(own):
        if name not in written:
            os.symlink(os.path.join(own, name), os.path.join(folder, name))
    settings = os.path.join(own, "settings.json")
    with suppress(OSError, ValueError, TypeError), open(settings, encoding="utf-8") as file:
        written["settings.json"] = {**json.load(file), **written["settings.json"]}
    for name, content in written.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    return {"PI_CODING_AGENT_DIR": folder}


def _pi_models(base: str, model: str) -> dict[str, object]:
    provider = {
        "baseUrl": base,
        "api": "openai-completions",
        "apiKey": KEY_VARIABLE,
        "models": [{"id": model}],
    }
    return {"providers": {_PROVIDER: provider}}


def _opencode(base: str, model: str) -> dict[str, object]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Trimtab",
        "options": {"baseURL": base, "apiKey": f"{{env:{KEY_VARIABLE}}}"},
        "models": {model: {"name": model}},
    }
    return {"provider": {_PROVIDER: provider}, "model": f"{_PROVIDER}/{model}"}


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command that still runs: ask it to, then kill it."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_TERM_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def run_command(command: Sequence[str], bridge: Bridge, env: Mapping[str, str]) -> int:
    """Run a command that uses the bridge; return its exit code.

    Its streams are ours, and signals to us go to it.
    """
    with tempfile.TemporaryDirectory(prefix="trimtab-bridge-") as folder:
        program = os.path.basename(command[0])
        environment = command_environment(env, bridge, program, folder)
        try:
            process = await asyncio.create_subprocess_exec(
                *command_arguments(command, bridge), env=environment
            )
        except OSError as error:
            raise ConfigurationError(
                f"{command[0]} cannot be started ({error.strerror}); check its name and PATH."
            ) from None

        def forward(number: signal.Signals) -> None:
            with suppress(ProcessLookupError):
                process.send_signal(number)

        loop = asyncio.get_running_loop()
        for number in _FORWARDED:
            loop.add_signal_handler(number, forward, number)
        # A terminal sends Ctrl-C to the command itself.
        on_terminal = any(map(os.isatty, range(3)))
        interrupt = (lambda _: None) if on_terminal else forward
        loop.add_signal_handler(signal.SIGINT, interrupt, signal.SIGINT)
        try:
            code = await process.wait()
        finally:
            await _end(process)
    return 128 - code if code < 0 else code
