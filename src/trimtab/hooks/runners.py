"""Runs one hook of a file: a program that reads its input, or an address it is posted to."""

import os
import re
from collections.abc import Callable, Mapping

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import HookEntry, HookFailed, Post, Program, RunProgram
from trimtab.hooks.answers import read_answer, read_end, read_progress

LARGEST_OUTPUT = 10 * 1024 * 1024
Tell = Callable[[str], None]
_VARIABLE = r"\$(?:\{(\w+)\}|(\w+))"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class HookEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What hooks of files get besides their input.

    `env` is what programs get: no key of ours is in it. `outside` is what headers of an http hook
    may name, and then only the variables the hook lists.
    """

    cwd: str
    project: str
    env: Mapping[str, str]
    outside: Mapping[str, str]
    run: RunProgram
    post: Post


async def run_entry(
    entry: HookEntry, given: JsonObject, around: HookEnvironment, tell: Tell
) -> JsonObject | None:
    """The output of a hook; `tell` hears how far it is. Raises `HookFailed`."""
    if entry.type == "http":
        return await _post(entry, given, around)
    return await _execute(entry, given, around, tell)


async def _execute(
    entry: HookEntry, given: JsonObject, around: HookEnvironment, tell: Tell
) -> JsonObject | None:
    def on_line(line: bytes) -> None:
        if (message := read_progress(line.decode("utf-8", "replace"))) is not None:
            tell(message)

    env = {**around.env, **_places(entry, around), **entry.env}
    program = Program(
        argv=_argv(entry, env),
        cwd=os.path.join(around.cwd, entry.folder),
        env=env,
        input=encode(given),
        seconds=entry.seconds,
        limit=LARGEST_OUTPUT,
        on_line=on_line,
    )
    try:
        ended = await around.run(program)
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


def _places(entry: HookEntry, around: HookEnvironment) -> dict[str, str]:
    places = {"CLAUDE_PROJECT_DIR": around.project}
    if entry.plugin:
        for name in ("PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"):
            places[name] = entry.plugin
    return places


def _expand(text: str, values: Mapping[str, str]) -> str:
    return re.sub(_VARIABLE, lambda match: values.get(match[1] or match[2], ""), text)


async def _post(entry: HookEntry, given: JsonObject, around: HookEnvironment) -> JsonObject | None:
    import asyncio

    _check_address(entry.url, around.outside)
    allowed = {name: value for name, value in around.outside.items() if name in entry.allowed_env}
    headers = {name: _expand(value, allowed) for name, value in entry.headers.items()}
    if any("\n" in value or "\r" in value for value in headers.values()):
        raise HookFailed("a header of its request has a line end in it")
    try:
        async with asyncio.timeout(entry.seconds):
            body = encode(given)
            headers = {"content-type": "application/json", **headers}
            status, answer = await around.post(entry.url, headers, body)
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
        raise HookFailed(f"{url} is no https address")
    if env.get("COPILOT_HOOK_ALLOW_LOCALHOST", "").lower() not in ("1", "true"):
        raise HookFailed(f"{url} is on this machine; COPILOT_HOOK_ALLOW_LOCALHOST=true allows that")


def encode(given: JsonObject) -> bytes:
    """An input as JSON, whatever strange text is in it."""
    try:
        return msgspec.json.encode(given) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, for example from a file name
        import json

        return json.dumps(given).encode() + b"\n"
