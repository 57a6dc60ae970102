"""The arguments, the input and the environment that programs of runtimes are given."""

import json
from typing import Any

import pytest

from trimtab.contracts.customization import RUNTIME_NAMES
from trimtab.runtimes.contract import (
    Asked,
    CallMade,
    Endpoint,
    Job,
    Permit,
    RuntimeSettings,
    effort_without_max,
    with_system,
)
from trimtab.runtimes.copilot import CopilotCli
from trimtab.runtimes.table import load_runtime

ALWAYS = [
    "--output-format",
    "json",
    "-s",
    "--allow-all",
    "--no-ask-user",
    "--autopilot",
    "--log-level",
    "error",
]
PLAIN = RuntimeSettings(disable_builtin_mcps=False, suppress_instructions=False)


def job(**fields: Any) -> Job:
    return Job(**{"prompt": "do it", "cwd": "/work", **fields})


@pytest.mark.proves("ADP-01")
def test_copilot_declares_its_abilities() -> None:
    abilities = CopilotCli.capabilities
    able = {"model_discovery", "streaming", "session_resume", "effort_levels"}
    unable = {
        *("prompt_via_arg", "system_prompt_file", "cost_tracking", "model_shorthands"),
        *("budget_cap", "bare_mode", "fallback_model", "session_persistence_control"),
    }
    assert all(getattr(abilities, name) for name in able)
    assert not any(getattr(abilities, name) for name in unable)


@pytest.mark.proves("ADP-02")
def test_copilot_streams_without_built_in_servers_instructions_and_summaries() -> None:
    args = CopilotCli().arguments(job())
    assert args[args.index("--stream") + 1] == "on"
    assert "--disable-builtin-mcps" in args
    assert "--no-custom-instructions" in args
    assert "--enable-reasoning-summaries" not in args


@pytest.mark.proves("ADP-06", "ADP-08")
@pytest.mark.parametrize("fields", [{}, {"model": "gpt-x", "effort": "low", "resume": "abc"}])
def test_copilot_always_gets_the_same_flags_and_never_verbose(fields: dict[str, Any]) -> None:
    args = CopilotCli().arguments(job(**fields))
    assert args[: len(ALWAYS)] == ALWAYS
    assert "--verbose" not in args
    assert "-v" not in args


@pytest.mark.proves("ADP-07")
def test_copilot_gets_other_flags_only_if_they_are_asked_for() -> None:
    plain = CopilotCli().arguments(job(settings=PLAIN))
    assert plain == [*ALWAYS, "--stream", "on"]
    settings = RuntimeSettings(stream_mode="off", reasoning_summaries=True)
    asked = job(model="gpt-x", effort="low", resume="abc", max_continues=3, settings=settings)
    assert CopilotCli().arguments(asked)[len(ALWAYS) :] == [
        *("--model", "gpt-x", "--effort", "low", "--resume=abc", "--stream", "off"),
        *("--max-autopilot-continues", "3", "--enable-reasoning-summaries"),
        *("--no-custom-instructions", "--disable-builtin-mcps"),
    ]


@pytest.mark.proves("ADP-09")
@pytest.mark.parametrize(
    ("effort", "passed"), [("max", "xhigh"), ("xhigh", "xhigh"), ("low", "low"), (None, None)]
)
def test_the_highest_effort_is_called_xhigh(effort: str | None, passed: str | None) -> None:
    assert effort_without_max(effort) == passed
    args = CopilotCli().arguments(job(effort=effort))
    assert (args[args.index("--effort") + 1] if "--effort" in args else None) == passed


@pytest.mark.proves("ADP-10")
def test_instructions_stand_before_the_prompt_if_there_are_any() -> None:
    assert with_system("", "do it") == "do it"
    assert with_system("", None) == ""
    assert with_system("Be brief.", "do it") == "<system>\nBe brief.\n</system>\n\ndo it"
    assert CopilotCli().input(job(system="Be brief.")).startswith(b"<system>\nBe brief.\n")


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_a_prompt_is_never_an_argument(name: str) -> None:
    runtime = load_runtime(name)
    prompt = "--help; rm -rf / " + "x" * 200_000
    given = job(prompt=prompt, model="m", effort="high", resume="abc", folders=("/other",))
    assert not any("rm -rf" in arg for arg in runtime.arguments(given))
    assert prompt.encode() in runtime.input(given)
    assert "abc" in " ".join(runtime.arguments(given))


@pytest.mark.parametrize("name", [name for name in RUNTIME_NAMES if name != "gemini"])
def test_with_models_of_the_host_no_model_is_named(name: str) -> None:
    runtime = load_runtime(name)
    given = job(model="mine", endpoint=Endpoint(url="http://127.0.0.1:9"))
    assert "mine" not in runtime.arguments(given)


def test_claude_is_asked_to_ask_before_every_call() -> None:
    lines = [json.loads(line) for line in load_runtime("claude").input(job()).splitlines()]
    hooks = lines[0]["request"]["hooks"]["PreToolUse"]
    assert [hook["matcher"] for hook in hooks] == [None]
    assert lines[1]["message"] == {"role": "user", "content": "do it"}


@pytest.mark.parametrize("form", ["hook_callback", "can_use_tool"])
def test_claude_is_answered_in_the_form_in_which_it_asked(form: str) -> None:
    claude = load_runtime("claude")
    call = CallMade(id="toolu_1", name="Bash", args={"command": "ls"})
    asked = Asked(request_id="r1", call=call, form=form)
    allowed = json.loads(claude.answer(asked, Permit(allowed=True, args={"command": "pwd"})))
    denied = json.loads(claude.answer(asked, Permit(allowed=False, reason="no")))
    assert allowed["response"]["request_id"] == "r1"
    yes, no = (answer["response"]["response"] for answer in (allowed, denied))
    if form == "can_use_tool":
        assert yes == {"behavior": "allow", "updatedInput": {"command": "pwd"}}
        assert no == {"behavior": "deny", "message": "no"}
    else:
        assert yes["hookSpecificOutput"]["updatedInput"] == {"command": "pwd"}
        assert no["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_arguments_of_a_call_can_be_named_back() -> None:
    claude = load_runtime("claude")
    args = {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True}
    name, ours = claude.rename(CallMade(id="1", name="Edit", args=args))
    assert (name, ours["path"], ours["old_str"]) == ("edit", "/a", "x")
    assert claude.restore("Edit", ours) == args
