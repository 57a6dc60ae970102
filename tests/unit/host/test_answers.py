"""The answers of people in words, told from the log."""

import pytest

from trimtab.host.answers import describe_exchange, describe_permission
from trimtab.host.parts import Question, ToolInvocation
from trimtab.host.plan_actions import PLAN_ACTIONS
from trimtab.tools.exit_plan_mode.tool import BY_FLEET, FLEET, refuse_plan


def call(name: str, output: str, **arguments: str) -> ToolInvocation:
    return ToolInvocation(
        key="1",
        call_id="1",
        name=name,
        title=name,
        arguments=arguments,
        output=output,
        state="completed",
        done=True,
    )


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("Plan approved! Exited plan mode.\n\nStop here.", PLAN_ACTIONS["exit_only"]),
        (f"Plan approved! Exited plan mode.\n\n{BY_FLEET}", PLAN_ACTIONS["autopilot_fleet"]),
        (
            f"Plan approved!\n\nYou are now in autopilot mode. Carry the plan out now.{FLEET}",
            PLAN_ACTIONS["autopilot_fleet"],
        ),
        ("Plan approved!\n\nYou are now in autopilot mode.", PLAN_ACTIONS["autopilot"]),
        ("Plan approved!\n\nYou are now in interactive mode.", PLAN_ACTIONS["interactive"]),
        ("The plan was not approved; stay in plan mode.", "stay in plan mode"),
        (
            refuse_plan("use Stop here. tabs").text,
            "use Stop here. tabs",
        ),
    ],
)
def test_the_decision_about_a_plan_is_told_in_the_words_of_its_choice(
    output: str, told: str
) -> None:
    assert describe_exchange(call("exit_plan_mode", output)) == f"Carry out this plan? — {told}"


def test_an_answer_to_the_model_is_told_with_its_question() -> None:
    asked = call("ask_user", "User selected: green", question="Colour?\nThink well.")
    assert describe_exchange(asked) == "Colour? — green"
    assert describe_exchange(call("bash", "green")) == ""


def test_only_the_answer_of_a_person_to_a_permission_question_is_told() -> None:
    asked = Question(
        key="q", request_id="q", kind="permission", request={"kind": "shell"}, done=True
    )
    assert describe_permission(asked) == ""
    answered = Question(
        key="q",
        request_id="q",
        kind="permission",
        request={"kind": "shell", "fullCommandText": "ls"},
        done=True,
        answer="approved-for-session",
    )
    assert describe_permission(answered) == "Run this command? — yes, in this session"


def test_the_words_of_a_refusal_are_told_with_it() -> None:
    refused = Question(
        key="q",
        request_id="q",
        kind="permission",
        request={"kind": "shell", "fullCommandText": "ls"},
        answer="denied-interactively-by-user",
        words="look into\n src first",
    )
    assert describe_permission(refused) == "Run this command? — no: look into src first"
