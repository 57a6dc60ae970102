"""Runs a hook of a file: starts its program, or posts its input to an address."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import HookEntry, HookFailed, Post, Program, RunProgram
from trimtab.contracts.json_text import encode_json
from trimtab.hooks.answers import read_answer, read_end, read_progress

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
OnProgress = Callable[[str], None]
"""Called with each progress message of a hook."""
_VARIABLE = r"\$(?:\{(\w+)\}|(\w+))"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class HookEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment that hooks of files run in.

    `env` is the environment of programs, without our keys. `outside` has the variables that the
    headers of an http hook may use, if the hook lists them.
    """

    cwd: str
    project: str
    env: Mapping[str, str]
    outside: Mapping[str, str]
    run: RunProgram
    post: Post


async def run_entry(
    entry: HookEntry, given: JsonObject, environment: HookEnvironment, on_progress: OnProgress
) -> JsonObject | None:
    """Run a hook and return its output. Raises `HookFailed`."""
    if entry.type == "http":
        return await _post(entry, given, environment)
    return await _execute(entry, given, environment, on_progress)


async def _execute(
    entry: HookEntry, given: JsonObject, environment: HookEnvironment, on_progress: OnProgress
) -> JsonObject | None:
    def on_line(line: bytes) -> None:
        if (message := read_progress(line.decode("utf-8", "replace"))) is not None:
            on_progress(message)

    env = {**environment.env, **_path_variables(entry, environment), **entry.env}
    program = Program(
        argv=_argv(entry, env),
        cwd=os.path.join(environment.cwd, entry.folder),
        env=env,
        input=encode_json(given) + b"\n",
        seconds=entry.seconds,
        limit=MAX_OUTPUT_BYTES,
        on_line=on_line,
    )
    try:
        ended = await environment.run(program)
    except OSError as error:
        raise HookFailed(f"it cannot be started: {error.strerror or error}") from None
    except ValueError as error:
        raise HookFailed(f"it cannot be started ({error}); correct its command") from None
    return read_end(entry, ended)


def _argv(entry: HookEntry, env: Mapping[str, str]) -> tuple[str, ...]:
    if entry.argv:
        return tuple(_expand(word, env) for word in entry.argv)
    if entry.command:
        return "bash", "-c", entry.command
    return "pwsh", "-NoProfile", "-NonInteractive", "-Command", entry.powershell


def _path_variables(entry: HookEntry, environment: HookEnvironment) -> dict[str, str]:
    variables = {"CLAUDE_PROJECT_DIR": environment.project}
    if entry.plugin:
        for name in ("PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"):
            variables[name] = entry.plugin
    return variables


def _expand(text: str, values: Mapping[str, str]) -> str:
    return re.sub(_VARIABLE, lambda match: values.get(match[1] or match[2], ""), text)


async def _post(
    entry: HookEntry, given: JsonObject, environment: HookEnvironment
) -> JsonObject | None:
    outside = environment.outside
    _check_address(entry.url, outside)
    allowed = {name: value for name, value in outside.items() if name in entry.allowed_env}
    headers = {name: _expand(value, allowed) for name, value in entry.headers.items()}
    if any("\n" in value or "\r" in value for value in headers.values()):
        raise HookFailed("a header of its request contains a line break")
    try:
        async with asyncio.timeout(entry.seconds):
            body = encode_json(given) + b"\n"
            headers = {"content-type": "application/json", **headers}
            status, answer = await environment.post(entry.url, headers, body)
    except TimeoutError:
        raise HookFailed(f"it did not answer within {entry.seconds:g} s") from None
    except TrimtabError as error:
        raise HookFailed(error.message) from None
    if not 200 <= status < 300:
        raise HookFailed(f"{entry.url} answered with status {status}")
    return read_answer(entry, answer.decode("utf-8", "replace"))


def _check_address(url: str, env: Mapping[str, str]) -> None:
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0].rpartition("@")[2]
    host = (
        authority.partition("]")[0] + "]" if authority[:1] == "[" else authority.partition(":")[0]
    )
    local = host.lower() in _LOCAL_HOSTS
    if scheme == "https" and not local:
        return
    if not local or scheme not in ("http", "https"):
        raise HookFailed(f"{url} is not an https address")
    if env.get("COPILOT_HOOK_ALLOW_LOCALHOST", "").lower() not in ("1", "true"):
        raise HookFailed(f"{url} is on this machine; set COPILOT_HOOK_ALLOW_LOCALHOST=true")
