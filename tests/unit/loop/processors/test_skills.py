"""Skills: how a person and a model call them, and the tools they are held to."""

from typing import Any

import pytest

from loopkit import EchoTool, change_agent, make_run
from trimtab.contracts.customization import Skill, SkillTools
from trimtab.contracts.mcp import Origin
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import Rule
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.skills import Skills, fill_arguments, is_allowed, wrap

RULE = Rule(kind="shell", argument="make")
REVIEW = Skill(
    name="review",
    path="/skills/review/SKILL.md",
    description="Reviews.",
    source="repository",
    origin="project",
    allowed_tools=("view",),
    plugin="tools",
)
TALK = Skill(
    name="talk",
    path="/skills/talk.md",
    description="Talks.",
    source="repository",
    is_command=True,
    model_invocable=False,
)


class Known:
    """Two skills; notes who called one that is held to tools."""

    def __init__(self, *, held: bool = True) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.processor = Skills(
            {"review": REVIEW, "talk": TALK}.get,
            lambda skill: f"Body of {skill.name} for $1.",
            self._tools if held else None,
        )

    def _tools(self, skill: Skill, *, by_person: bool) -> SkillTools:
        self.asked.append((skill.name, by_person))
        return SkillTools(name=skill.name, tools=frozenset(("view",)), rules=(RULE,))


def of(run: Run, kind: str) -> list[Any]:
    return run.session.of(kind)  # type: ignore[attr-defined, no-any-return]


def pending(name: str, **args: Any) -> PendingCall:
    return PendingCall(
        call=ToolCall(id="c", name=name, arguments=""), tool=EchoTool(name), args=args
    )


async def test_a_person_calls_a_skill_by_its_name_with_arguments() -> None:
    run, known = make_run([]), Known()
    prompt = await known.processor.on_prompt(run, Prompt(text="/review main.py now", id="p"))
    assert prompt.text == wrap(REVIEW, "Body of review for main.py.")
    assert (prompt.display, prompt.id) == ("/review main.py now", "p")
    (invoked,) = of(run, "skill.invoked")
    assert (invoked.name, invoked.path, invoked.description) == (
        "review",
        "/skills/review/SKILL.md",
        "Reviews.",
    )
    assert invoked.content == "Body of review for main.py."
    assert (invoked.allowed_tools, invoked.plugin_name) == (["view"], "tools")
    assert (invoked.trigger, invoked.source, invoked.model) == (
        "user-invoked",
        "project",
        "scripted",
    )
    assert invoked.disable_model_invocation is False
    assert known.asked == [("review", True)]


async def test_a_command_is_sent_as_its_body_alone() -> None:
    run, known = make_run([]), Known()
    shown = Prompt(text="/talk", display="Talk to me")
    prompt = await known.processor.on_prompt(run, shown)
    assert (prompt.text, prompt.display) == ("Body of talk for .", "Talk to me")
    (invoked,) = of(run, "skill.invoked")
    assert (invoked.allowed_tools, invoked.plugin_name) == (None, None)
    assert invoked.disable_model_invocation is True
    assert known.asked == [], "it is held to no tools"


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(text="review it"),
        Prompt(text="/unknown"),
        Prompt(text="/review", source="hook"),
        Prompt(text="/review", source="autopilot"),
    ],
)
async def test_other_prompts_stay_as_they_are(prompt: Prompt) -> None:
    run = make_run([])
    assert await Known().processor.on_prompt(run, prompt) is prompt
    assert of(run, "skill.invoked") == []


@pytest.mark.parametrize("held", [True, False])
async def test_a_skill_at_work_is_held_to_its_tools_and_allowed_its_rules(held: bool) -> None:
    run, known = make_run([]), Known(held=held)
    await known.processor.on_prompt(run, Prompt(text="/review x"))
    refused = await known.processor.before_tool(run, pending("bash"))
    allowed = await known.processor.before_tool(run, pending("view"))
    assert isinstance(allowed, PendingCall)
    if held:
        assert isinstance(refused, ToolResult)
        assert refused.kind == "denied"
        assert refused.text == "The call was not made: the skill review may use only view."
        assert allowed.granted == (RULE,)
    else:
        assert isinstance(refused, PendingCall)
        assert allowed.granted == ()


async def test_a_skill_is_at_work_until_the_next_prompt_of_the_person() -> None:
    run, known = make_run([]), Known()
    await known.processor.on_prompt(run, Prompt(text="/review x"))
    await known.processor.on_prompt(run, Prompt(text="go on", source="autopilot"))
    assert isinstance(await known.processor.before_tool(run, pending("bash")), ToolResult)
    await known.processor.on_prompt(run, Prompt(text="thanks"))
    assert isinstance(await known.processor.before_tool(run, pending("bash")), PendingCall)


async def test_a_sub_agent_is_held_to_the_skills_of_its_caller() -> None:
    run, known = make_run([]), Known()
    change_agent(run, id="child", caller_id="parent")
    other = make_run([])
    change_agent(other, id="parent", caller_id=other.session.id)
    await known.processor.on_prompt(other, Prompt(text="/review x"))
    assert isinstance(await known.processor.before_tool(run, pending("bash")), ToolResult)
    change_agent(run, caller_id="somebody")
    assert isinstance(await known.processor.before_tool(run, pending("bash")), PendingCall)


async def test_the_main_agent_is_held_to_the_skills_of_sub_agents_it_did_not_call() -> None:
    """The main agent has an empty id, and its caller is the session."""
    run, known = make_run([]), Known()
    change_agent(run, id="child", caller_id=run.session.id)
    main = make_run([])
    await known.processor.on_prompt(main, Prompt(text="/review x"))
    assert isinstance(await known.processor.before_tool(run, pending("bash")), ToolResult)


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (pending("skill", skill="review"), "success", True),
        (pending("skill", skill="review"), "failure", False),
        (pending("skill", skill="unknown"), "success", False),
        (pending("skill"), "success", False),
        (pending("view", skill="review"), "success", False),
    ],
)
async def test_a_model_that_loads_a_skill_is_sent_its_body(
    call: PendingCall, kind: Any, told: bool
) -> None:
    run, known = make_run([]), Known()
    run.interaction_id = "i1"
    result = ToolResult(text="loaded", kind=kind)
    assert await known.processor.after_tool(run, call, result) is result
    sent, invoked = of(run, "user.message"), of(run, "skill.invoked")
    assert (len(sent), len(invoked)) == (int(told), int(told))
    if told:
        assert sent[0].content == wrap(REVIEW, "Body of review for $1.")
        assert (sent[0].source, sent[0].interaction_id) == ("skill-review", "i1")
        assert invoked[0].trigger == "agent-invoked"
        assert known.asked == [("review", False)]


@pytest.mark.parametrize(
    ("name", "tools", "allowed"),
    [
        ("view", None, True),
        ("view", {"view"}, True),
        ("bash", {"view"}, False),
        ("task_complete", {"view"}, True),
        ("skill", set(), True),
        ("small-echo", {"small/echo"}, True),
        ("small-echo", {"small/other"}, False),
    ],
)
def test_a_tool_is_allowed_by_any_of_its_names(name: str, tools: Any, allowed: bool) -> None:
    tool = EchoTool(name)
    if name == "small-echo":
        tool.origin = Origin(  # type: ignore[attr-defined]
            server="small", tool="echo", transport="stdio", source="user", title=""
        )
    held = SkillTools(name="s", tools=None if tools is None else frozenset(tools))
    assert is_allowed(tool, held) is allowed


def test_the_body_is_sent_with_the_folder_of_its_files() -> None:
    assert wrap(REVIEW, "Look.") == (
        '<skill-context name="review">\nBase directory for this skill: /skills/review\n\n'
        "Look.\n</skill-context>"
    )


@pytest.mark.parametrize(
    ("body", "arguments", "filled"),
    [
        ("Fix $ARGUMENTS.", "a b", "Fix a b."),
        ("Fix $1 and $2.", "a b", "Fix a and b."),
        ("Fix $3.", "a b", "Fix ."),
        ("Fix $9.", "a b", "Fix ."),
        ("Fix $ARGUMENTS[0], $ARGUMENTS[1], $ARGUMENTS[2].", "a b", "Fix a, b, ."),
        ("Costs $10.", "", "Costs $10."),
        ("Costs $10.", "a", "Costs $10.\n\nARGUMENTS: a"),
        ("Plain.", "a b", "Plain.\n\nARGUMENTS: a b"),
        ("Plain.", "", "Plain."),
        ("Use $1.", "", "Use ."),
    ],
)
def test_placeholders_are_replaced_and_other_arguments_appended(
    body: str, arguments: str, filled: str
) -> None:
    assert fill_arguments(body, arguments) == filled
