"""The tools of a session: by its mode, its model, its client and the lists of its options."""

from typing import Any

import pytest

from loopkit import EchoTool
from trimtab.agents.toolset import ToolConditions, choose_names, family_tools, filter_tools
from trimtab.contracts.mcp import Origin
from trimtab.contracts.options import Client, SessionOptions

PLAIN = SessionOptions(cwd="/")


def chosen(client: Client | None = None, options: SessionOptions = PLAIN, **now: Any) -> set[str]:
    given = {"mode": "interactive", "model": "m", **now}
    return choose_names(options, client or Client(), ToolConditions(**given))


def test_tools_for_special_cases_are_there_only_then() -> None:
    usual = chosen()
    assert {"bash", "view", "edit", "create", "grep", "glob", "task", "web_fetch"} <= usual
    absent = {"task_complete", "notebook", "lsp", "skill", "ask_user", "exit_plan_mode"}
    assert not usual & {*absent, "store_memory", "web_search", "session_store_sql"}
    assert chosen(mode="autopilot") - usual == {"task_complete"}
    assert chosen(suffixes=(".ipynb",)) - usual == {"notebook"}
    assert chosen(has_language_servers=True) - usual == {"lsp"}
    assert chosen(features=("REPORT_INTENT",)) - usual == {"report_intent"}
    named = SessionOptions(cwd="/", available_tools=("notebook",))
    assert chosen(options=named) - usual == {"notebook"}


def test_nothing_of_the_web_is_there_offline() -> None:
    assert "web_fetch" not in chosen(env={"COPILOT_OFFLINE": "true"})
    assert "web_fetch" not in chosen(features=("DISABLE_WEB_TOOLS",))


@pytest.mark.parametrize("model", ["gpt-5", "openai/GPT-5.1-codex"])
def test_models_that_were_trained_with_other_tools_get_those(model: str) -> None:
    names = chosen(model=model)
    assert {"apply_patch", "rg"} <= names
    assert not names & {"create", "edit", "grep"}
    assert not family_tools("gpt-4.1")
    assert not chosen(model="gpt-4.1") & {"apply_patch", "rg"}


def test_a_client_that_wants_to_be_asked_gets_some_tools_only_by_name() -> None:
    careful = Client(always_ask=True)
    documentation = "fetch_copilot_cli_documentation"
    assert documentation in chosen()
    assert documentation not in chosen(careful)
    for name in (documentation, f"builtin:{documentation}"):
        named = SessionOptions(cwd="/", available_tools=(name,))
        assert documentation in chosen(careful, named)


SERVED, CUSTOM, OWN = EchoTool("small-echo"), EchoTool("mine"), EchoTool("bash")
SERVED.origin = Origin(server="small", tool="echo", transport="stdio")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("available", "excluded", "left"),
    [
        (None, (), {"bash", "mine", "small-echo"}),
        (("*",), ("custom:*",), {"bash", "small-echo"}),
        (("builtin:*",), (), {"bash"}),
        (("mcp:*", "mine"), (), {"mine", "small-echo"}),
        (("mcp:small",), (), {"small-echo"}),
        (("bash", "builtin:mine"), (), {"bash"}),
        (("*",), ("bash", "small/*"), {"mine"}),
        ((), (), set()),
        (("bash",), ("bash",), set()),
    ],
)
def test_lists_name_tools_or_their_sources_and_excluded_wins(
    available: tuple[str, ...] | None, excluded: tuple[str, ...], left: set[str]
) -> None:
    options = SessionOptions(cwd="/", available_tools=available, excluded_tools=excluded)
    external = {tool.spec.name: tool for tool in (CUSTOM, SERVED)}
    assert set(filter_tools({"bash": OWN}, external, options)) == left
