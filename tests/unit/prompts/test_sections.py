"""The system prompt by its sections: order, rules, families, sizes."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.agents.toolset import WHERE_USEFUL
from trimtab.contracts.run import Mode
from trimtab.customize.agents import builtin_agents
from trimtab.prompts import assemble as assembling
from trimtab.prompts.assemble import (
    FAMILIES,
    FRAGMENTS,
    SECTIONS,
    TOOL_BLOCKS,
    VARIANTS,
    Assembled,
    PromptFacts,
    assemble,
    family_of,
)
from trimtab.providers.tokens import counter_for
from trimtab.tools.catalog import builtin_tools

FOLDER = os.path.join(os.path.dirname(assembling.__file__), "sections")
DEFAULT_TOOLS = frozenset(builtin_tools()) - {"task_complete", "exit_plan_mode"}
EVERY_TOOL = DEFAULT_TOOLS | {*TOOL_BLOCKS, "sql", "report_intent"}


def facts(**changes: Any) -> PromptFacts:
    usual: dict[str, Any] = {
        "version": "1.2.3",
        "cwd": "/here/project",
        "system": "Linux 6.1 (x86_64)",
        "listing": ("src/", "README.md"),
        "tools": EVERY_TOOL,
    }
    return PromptFacts(**{**usual, **changes})


def whole(assembled: Assembled) -> str:
    return "\n\n".join(section.text for section in assembled.sections)


def part(name: str, **changes: Any) -> str:
    return next(
        (
            section.text
            for section in assemble(facts(**changes)).sections
            if section.section == name
        ),
        "",
    )


@pytest.mark.proves("SYS-01", "SYS-02")
def test_the_parts_come_in_their_order() -> None:
    text = whole(assemble(facts(instructions=("RULES OF THE HOUSE",), mode="autopilot")))
    marks = [
        "You are Trimtab",
        "<tone_and_style>",
        "<tool_efficiency>",
        "<environment_context>",
        "<code_change_instructions>",
        "<guidelines>",
        "<environment_limitations>",
        "<tools>",
        "RULES OF THE HOUSE",
        "<task_completion>",
        "Think as long as",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.proves("SYS-03", "SYS-06", "SYS-08")
def test_identity_says_who_which_version_and_the_job() -> None:
    first, _, job = part("identity").partition("\n\n")
    assert first.startswith("You are Trimtab, an agent that works on software in a terminal")
    assert "Version 1.2.3" in first
    assert "smallest change" in job


@pytest.mark.proves("SYS-04", "SYS-05", "SYS-07", "SYS-20")
def test_tone_efficiency_surroundings_and_the_last_word() -> None:
    assert "concise and direct" in part("tone")
    assert "three sentences" in part("tone")
    for model in ("", "gpt-5", "claude-sonnet-4", "gemini-2.5-pro"):
        assert "Call tools in parallel" in part("tool_efficiency", model=model)
    around = part("environment_context")
    for said in ("/here/project", "Linux 6.1", "src/\nREADME.md"):
        assert said in around
    last = assemble(facts()).sections[-1]
    assert last.section == "last_instructions"
    assert "long thinking is fine" in last.text


@pytest.mark.proves("SYS-09")
def test_only_windows_is_told_about_backslashes() -> None:
    assert "backslashes" in whole(assemble(facts(windows=True)))
    assert "backslash" not in whole(assemble(facts()))


TOGGLES: dict[str, tuple[str, str]] = {
    "code_scanning": ("features", "CODE_SCANNING"),
    "self_documentation": ("tools", "fetch_copilot_cli_documentation"),
    "using_sql_tool": ("tools", "sql"),
    "todo_tracking": ("tools", "sql"),
    "reporting_progress": ("tools", "report_intent"),
    "custom_agent_work": ("tools", "task"),
}


@pytest.mark.proves("SYS-27")
@pytest.mark.parametrize("name", FRAGMENTS)
def test_each_fragment_is_there_with_its_toggle_and_gone_without_it(name: str) -> None:
    with open(os.path.join(FOLDER, f"{name}.md"), encoding="utf-8") as file:
        text = file.read().strip()
    field, toggle = TOGGLES[name]
    all_on: dict[str, Any] = {
        "features": frozenset(["CODE_SCANNING"]),
        "tools": EVERY_TOOL,
        "mode": "autopilot",
    }
    assert text in whole(assemble(facts(**all_on)))
    off = {**all_on, field: all_on[field] - {toggle}}
    assert text not in whole(assemble(facts(**off)))


@pytest.mark.proves("SYS-10", "SYS-11", "SYS-27")
def test_code_change_rules_have_their_parts_and_scanning_only_where_it_is_on() -> None:
    plain = part("code_change_rules")
    assert plain.startswith("<code_change_instructions>")
    assert plain.endswith("</code_change_instructions>")
    for name in ("rules_for_code_changes", "linting_building_testing", "style"):
        assert f"<{name}>" in plain
    _, _, more = plain.partition("<additional_instructions>")
    assert "Do not weaken security" in more.partition("</additional_instructions>")[0]
    assert "scanning" not in plain
    assert "Code scanning is on" in part("code_change_rules", features=frozenset(["CODE_SCANNING"]))


@pytest.mark.proves("SYS-12", "SYS-13", "SYS-14", "SYS-15")
def test_guidelines_speak_of_the_tools_that_are_there() -> None:
    full, bare = part("guidelines"), part("guidelines", tools=frozenset(["view"]))
    assert "fetch_copilot_cli_documentation" in full
    for said in ("SQLite", "todos", "todo_deps", "kebab-case", "in_progress", "report_intent"):
        assert said in full
        assert said not in bare
    for text in (full, bare):
        assert "<tips_and_tricks>" in text
        assert "\n\n" not in text, "what is left out leaves no gap"


@pytest.mark.proves("SYS-16")
def test_limitations_say_what_is_allowed_disallowed_and_prohibited() -> None:
    for name in ("allowed_actions", "disallowed_actions", "prohibited_actions"):
        assert f"<{name}>" in part("safety")


@pytest.mark.proves("SYS-17")
@given(tools=st.sets(st.sampled_from(sorted(EVERY_TOOL))))
def test_a_tool_has_its_block_if_and_only_if_it_is_enabled(tools: set[str]) -> None:
    text = part("tool_instructions", tools=frozenset(tools))
    for name in TOOL_BLOCKS:
        tag = "code_search_tools" if name == "semantic_code_search" else name
        assert (f"<{tag}>" in text) == (name in tools)


def test_the_shell_block_names_its_modes() -> None:
    for mode in ("sync", "async", "detach"):
        assert mode in part("tool_instructions", tools=frozenset(["bash"]))


@pytest.mark.proves("SYS-21", "SYS-22", "SYS-23")
def test_autopilot_adds_completion_and_validation_rules() -> None:
    done, check = part("task_completion", mode="autopilot"), part("validation", mode="autopilot")
    for said in ("lasts", "apply configuration", "background process", "try another"):
        assert said in done
    assert "what worked before still works" in check
    assert "custom agent has completed: accept it as final" in check
    alone = part("validation", mode="autopilot", tools=DEFAULT_TOOLS - {"task"})
    assert alone
    assert "custom agent" not in alone
    for mode in ("interactive", "plan"):
        assert not part("task_completion", mode=mode)
        assert not part("validation", mode=mode)


@pytest.mark.proves("SYS-26")
def test_a_family_has_its_own_text_in_place_of_the_usual_one() -> None:
    texts = {part("tool_efficiency", model=model) for model in ("x", "gpt-5", "claude-4", "gemini")}
    assert len(texts) == 4
    assert family_of("openai/GPT-5-mini") == family_of("o3-mini") == "gpt"
    assert family_of("anthropic/claude-opus-4") == "claude"
    assert family_of("qwen2.5-coder") == ""


def test_every_file_is_used_and_every_name_has_its_file() -> None:
    names = {section.name for section in SECTIONS} | set(FRAGMENTS)
    names |= {f"{name}.{family}" for name in VARIANTS for family in FAMILIES}
    names |= {"compaction", "nudge", "title"}
    found = {name[:-3] for name in os.listdir(FOLDER) if name.endswith(".md")}
    assert found == names
    assert {name[:-3] for name in os.listdir(f"{FOLDER}/tools")} == set(TOOL_BLOCKS)


@pytest.mark.parametrize("mode", ["interactive", "plan", "autopilot"])
def test_the_main_agent_costs_at_most_6000_tokens_with_its_tools(mode: Mode) -> None:
    counter = counter_for("gpt-5")
    everywhere = [tool.spec for name, tool in builtin_tools().items() if name not in WHERE_USEFUL]
    tools = counter.of_tools(everywhere)
    for tool_names in (DEFAULT_TOOLS, EVERY_TOOL):
        for model in ("gpt-5", "claude-sonnet-4", "gemini-2.5-pro"):
            said = whole(assemble(facts(mode=mode, model=model, tools=tool_names)))
            assert counter.text(said) + tools <= 6000


@pytest.mark.parametrize("name", sorted(WHERE_USEFUL))
def test_a_tool_for_some_projects_costs_at_most_250_tokens(name: str) -> None:
    (tool,) = builtin_tools([name]).values()
    assert counter_for("gpt-5").of_tools([tool.spec]) <= 250


def test_explore_costs_at_most_2000_tokens_with_its_tools() -> None:
    counter = counter_for("gpt-5")
    agent = next(agent for agent in builtin_agents([]) if agent.name == "explore")
    assert agent.tools is not None
    tools = counter.of_tools([tool.spec for tool in builtin_tools(agent.tools).values()])
    said = whole(assemble(facts(agent=agent.prompt, tools=frozenset(agent.tools))))
    assert counter.text(said) + tools <= 2000


@given(limit=st.integers(1, 20_000), size=st.integers(0, 60_000))
def test_a_small_window_keeps_what_matters_most(limit: int, size: int) -> None:
    small = facts(limit=limit, instructions=("x" * size,) if size else ())
    complete = assemble(facts(instructions=small.instructions)).sections
    assembled = assemble(small)
    kept, left_out = assembled.sections, assembled.left_out
    names = [section.section for section in kept]
    assert sorted((*names, *left_out)) == sorted(section.section for section in complete)
    assert {"identity", "safety"} <= set(names)
    if limit > assembling.SMALL_WINDOW:
        assert not left_out
    used = sum(len(section.text) for section in kept)
    least = sum(len(section.text) for section in kept if not section.priority)
    assert used <= max(limit, least) or not left_out
    for missing in (section for section in complete if section.section in left_out):
        lower = sum(
            len(section.text) for section in kept if 0 < section.priority < missing.priority
        )
        assert used - lower + len(missing.text) > limit, (
            "no section is dropped for one of lower priority"
        )


def test_a_window_of_4096_tokens_leaves_the_least_important_out() -> None:
    shown = assemble(facts(limit=4096))
    assert shown.left_out
    assert "code_change_rules" not in shown.left_out
    assert assemble(facts(limit=16_384)).left_out == ()
