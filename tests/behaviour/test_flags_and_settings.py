"""Flags win over settings, for every option that exists as both, whatever the value is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clikit import Cli, serving
from livekit import opened
from trimtab import Runtime, SessionOptions
from trimtab.cli.inputs import build_options
from trimtab.cli.parse import parse
from trimtab.contracts.options import Client, SandboxSettings
from trimtab.customize.customizations import Customizations
from trimtab.runtime.options import LimitSettings

Read = Callable[[SessionOptions, Customizations], Any]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option. `by_flag` and `by_setting` are what it comes to when only that is given."""

    flag: tuple[str, ...]
    setting: dict[str, Any]
    read: Read
    by_flag: Any
    by_setting: Any


def limit(name: str) -> Read:
    return lambda options, _: getattr(options.limits, name)


def is_sandboxed(options: SessionOptions, _: Customizations) -> bool:
    settings = options.sandbox_settings or SandboxSettings()
    return settings.enabled if options.sandbox is None else options.sandbox


def is_experimental(_: SessionOptions, custom: Customizations) -> bool:
    return "AUTOPILOT_MODE" in custom.features


# The values of the flags are the defaults where there are any: a value that was chosen must not
# be taken for one that nobody chose.
OPTIONS = {
    "model": Option(
        flag=("--model", "mine"),
        setting={"model": "usual"},
        read=lambda options, _: options.model,
        by_flag="mine",
        by_setting="usual",
    ),
    "effort": Option(
        flag=("--effort", "low"),
        setting={"effortLevel": "high"},
        read=lambda options, _: options.effort,
        by_flag="low",
        by_setting="high",
    ),
    "maxAutopilotContinues": Option(
        flag=("--max-autopilot-continues", "5"),
        setting={"limits": {"maxAutopilotContinues": 20}},
        read=limit("continues"),
        by_flag=5,
        by_setting=20,
    ),
    "maxRepeats": Option(
        flag=("--max-repeats", "25"),
        setting={"limits": {"maxRepeats": 0}},
        read=limit("max_repeats"),
        by_flag=25,
        by_setting=0,
    ),
    "maxTurns": Option(
        flag=("--max-turns", "7"),
        setting={"limits": {"maxTurns": 3}},
        read=limit("max_turns"),
        by_flag=7,
        by_setting=3,
    ),
    "maxTokens": Option(
        flag=("--max-tokens", "7000"),
        setting={"limits": {"maxTokens": 100}},
        read=limit("max_tokens"),
        by_flag=7000,
        by_setting=100,
    ),
    "maxBudgetUsd": Option(
        flag=("--max-budget-usd", "7"),
        setting={"limits": {"maxBudgetUsd": 2}},
        read=limit("max_usd"),
        by_flag=7,
        by_setting=2,
    ),
    "maxAiCredits": Option(
        flag=("--max-ai-credits", "700"),
        setting={"limits": {"maxAiCredits": 200}},
        read=limit("max_usd"),
        by_flag=7,
        by_setting=2,
    ),
    "deadline": Option(
        flag=("--deadline", "7m"),
        setting={"limits": {"deadline": 30}},
        read=limit("deadline"),
        by_flag=420,
        by_setting=30,
    ),
    "sandbox": Option(
        flag=("--no-sandbox",),
        setting={"sandbox": {"enabled": True}},
        read=is_sandboxed,
        by_flag=False,
        by_setting=True,
    ),
    "no sandbox": Option(
        flag=("--sandbox",),
        setting={"sandbox": {"enabled": False}},
        read=is_sandboxed,
        by_flag=True,
        by_setting=False,
    ),
    "experimental": Option(
        flag=("--no-experimental",),
        setting={"experimental": True},
        read=is_experimental,
        by_flag=False,
        by_setting=True,
    ),
    "not experimental": Option(
        flag=("--experimental",),
        setting={"experimental": False},
        read=is_experimental,
        by_flag=True,
        by_setting=False,
    ),
}


async def resolve(folder: Path, argv: tuple[str, ...], settings: dict[str, Any], read: Read) -> Any:
    """What an option comes to with these flags and settings."""
    home = folder / "home"
    home.mkdir(parents=True)
    (home / "settings.json").write_text(json.dumps(settings))
    runtime = Runtime(env={"COPILOT_HOME": str(home), "HOME": str(folder)})
    options = build_options(parse(["-C", str(folder), *argv]))
    custom, resolved = await runtime.prepare(await runtime.folders.inspect(options, Client()))
    complete = resolved.options
    return read(complete, custom)


@pytest.mark.parametrize("name", OPTIONS)
async def test_a_flag_wins_over_its_setting(tmp_path: Path, name: str) -> None:
    option = OPTIONS[name]
    read = option.read
    assert await resolve(tmp_path / "flag", option.flag, {}, read) == option.by_flag
    assert await resolve(tmp_path / "setting", (), option.setting, read) == option.by_setting
    assert await resolve(tmp_path / "both", option.flag, option.setting, read) == option.by_flag


def test_every_limit_of_the_settings_is_compared_with_its_flag() -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(LimitSettings)}
    compared = set().union(*(option.setting.get("limits", {}) for option in OPTIONS.values()))
    assert compared == fields


@pytest.mark.parametrize(
    ("args", "settings", "calls"),
    [
        (("--max-autopilot-continues", "5"), {"limits": {"maxAutopilotContinues": 1}}, 6),
        ((), {"limits": {"maxAutopilotContinues": 1}}, 2),
        ((), {}, 6),
    ],
)
async def test_autopilot_goes_on_as_often_as_the_flag_says(
    cli: Cli, args: tuple[str, ...], settings: dict[str, Any], calls: int
) -> None:
    (cli.home / "settings.json").write_text(json.dumps(settings))
    script = {"replies": [], "otherwise": {"text": "Nearly there."}}
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--autopilot", *args)
        assert server.usage.requests == calls
    assert outcome.code == 3


async def test_a_limit_on_continuations_that_is_set_in_a_session_holds(tmp_path: Path) -> None:
    script = {"replies": [], "otherwise": {"text": "Nearly there."}}
    async with opened(tmp_path, script, mode="autopilot") as (live, _, provider):
        await live.ask("/limits continues 2")
        await live.ask("go")
        assert len(provider.requests) == 3
