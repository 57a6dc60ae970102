"""The small model's dialect: what it may do next, and what its calls become."""

import json
from typing import Any

import pytest

from trimtab.contracts.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from trimtab.contracts.provider import Request, ToolSpec
from trimtab.providers.embedded.dialect import Story, body_of, check_again, reply_of

TASK = "check.py fails. Fix prices.py.\n\nprices.py:\n```\ndef total(x):\n    return x + 1\n```"
TOOLS = tuple(ToolSpec(name=name, description="") for name in ("bash", "view", "create", "edit"))
RAN = ("bash", {"command": "python check.py", "description": "x"})
WROTE = ("edit", {"path": "prices.py", "old_str": "a", "new_str": "b"})


def request(
    *steps: tuple[tuple[str, dict[str, Any]], str, bool], task: str = TASK, tools: Any = TOOLS
) -> Request:
    messages: list[Any] = [UserMessage.of(f"<current_datetime>now</current_datetime>\n\n{task}")]
    for number, ((name, arguments), text, failed) in enumerate(steps):
        call = ToolCall(id=str(number), name=name, arguments=json.dumps(arguments))
        messages += [
            AssistantMessage(text="I think.", tool_calls=(call,)),
            ToolMessage(call_id=str(number), text=text, failed=failed),
        ]
    return Request(model="local", system="", messages=messages, tools=tools)


def allowed(given: Request) -> set[str]:
    schema = json.loads(body_of(given, "Be an agent."))["response_format"]["json_schema"]["schema"]
    return {call["properties"]["name"]["const"] for call in schema["properties"]["call"]["anyOf"]}


def answer(given: Request, **call: Any) -> Any:
    content = json.dumps({"thought": "So.", "call": call})
    body = {
        "choices": [{"message": {"content": content}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }
    return reply_of(json.dumps(body).encode(), given).message


FAILS = (RAN, "AssertionError\n<exited with exit code 1>", False)
PASSES = (RAN, "ok\n<exited with exit code 0>", False)
CHANGED = (WROTE, "File prices.py updated with changes.", False)
NO_MATCH = (WROTE, "No match found", True)


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        ((), {"bash"}),
        ((FAILS,), {"write"}),
        ((FAILS, CHANGED), {"bash"}),
        ((FAILS, CHANGED, FAILS), {"write"}),
        ((FAILS, NO_MATCH), {"view", "write"}),
        ((FAILS, CHANGED, PASSES), {"answer"}),
        ((FAILS, CHANGED) * 8, {"answer"}),
    ],
)
def test_what_may_come_next_follows_from_what_has_happened(steps: Any, names: set[str]) -> None:
    assert allowed(request(*steps)) == names


def test_a_question_may_be_answered_at_once_and_must_be_after_a_miss() -> None:
    missing = (("view", {"path": "README.md"}), "Path README.md does not exist.", True)
    assert "answer" in allowed(request(task="What does this do?"))
    assert allowed(request(missing, task="What does this do?")) == {"answer"}


def test_without_tools_there_is_only_the_answer() -> None:
    assert allowed(request(FAILS, tools=())) == {"answer"}


def test_a_whole_file_becomes_an_edit_where_the_old_text_is_known() -> None:
    message = answer(request(FAILS), name="write", path="prices.py", text="new\n")
    call = message.tool_calls[0]
    assert call.name == "edit"
    assert json.loads(call.arguments) == {
        "path": "prices.py",
        "old_str": "def total(x):\n    return x + 1",
        "new_str": "new",
    }


def test_a_viewed_file_is_known_without_its_line_numbers() -> None:
    viewed = (("view", {"path": "./a.py"}), "1. one\n2.     two\n3. ", False)
    call = answer(request(viewed, task="Fix a.py"), name="write", path="a.py", text="x").tool_calls[
        0
    ]
    assert json.loads(call.arguments)["old_str"] == "one\n    two"


def test_an_unknown_file_becomes_a_new_one() -> None:
    call = answer(request(FAILS), name="write", path="b.py", text="x").tool_calls[0]
    assert (call.name, json.loads(call.arguments)["file_text"]) == ("create", "x\n")


def test_an_answer_ends_the_run_or_completes_the_task() -> None:
    assert answer(request(PASSES), name="answer", text="Done.").text == "Done."
    tools = (*TOOLS, ToolSpec(name="task_complete", description=""))
    call = answer(request(PASSES, tools=tools), name="answer", text="Done.").tool_calls[0]
    assert (call.name, json.loads(call.arguments)) == ("task_complete", {"summary": "Done."})


def test_an_answer_that_was_cut_off_is_no_crash() -> None:
    body = {"choices": [{"message": {"content": '{"thought": "I wa'}}]}
    assert "could not finish" in reply_of(json.dumps(body).encode(), request()).message.text


def test_the_model_is_shown_its_own_words_and_short_results() -> None:
    long = (RAN, "x" * 9000 + "\n<exited with exit code 1>", False)
    body = json.loads(body_of(request(long, CHANGED), "Be an agent."))
    roles = [turn["role"] for turn in body["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "current_datetime" not in body["messages"][1]["content"]
    assert len(body["messages"][3]["content"]) < 1700
    assert json.loads(body["messages"][4]["content"])["call"] == {
        "name": "write",
        "path": "prices.py",
        "text": "b",
    }


def test_every_miss_raises_the_temperature_so_that_it_does_not_go_round_in_circles() -> None:
    def temperature(*steps: Any) -> float:
        return float(json.loads(body_of(request(*steps), "x"))["temperature"])

    assert temperature(FAILS) == 0.0
    assert temperature(FAILS, CHANGED, FAILS) < temperature(FAILS, CHANGED, FAILS, CHANGED, FAILS)
    assert temperature(NO_MATCH) > 0


def test_what_of_a_traceback_says_only_where_is_left_out() -> None:
    output = 'Traceback (most recent call last):\n  File "/tmp/x/check.py", line 4\n    assert f() == 2\n    ^^^^\nAssertionError: not 3\n<exited with exit code 1>'
    shown = json.loads(body_of(request((RAN, output, False)), "x"))["messages"][-1]["content"]
    assert "/tmp/x" not in shown
    assert "AssertionError: not 3" in shown


def test_the_check_is_run_again_after_a_change_without_asking_the_model() -> None:
    assert check_again(request(FAILS)) is None
    reply = check_again(request(FAILS, CHANGED))
    assert reply is not None
    (call,) = reply.message.tool_calls
    assert (call.name, json.loads(call.arguments)["command"]) == ("bash", "python check.py")
    assert check_again(request(FAILS, NO_MATCH)) is None
    assert check_again(request(CHANGED)) is None, "nothing was run yet"


def test_what_was_there_and_what_was_tried_counts_as_a_repeat() -> None:
    story = Story(request(FAILS, CHANGED, FAILS))

    def edit(text: str) -> ToolCall:
        arguments = json.dumps({"path": "prices.py", "old_str": "x", "new_str": text})
        return ToolCall(id="1", name="edit", arguments=arguments)

    assert story.is_repeat(edit("b\n"))
    assert story.is_repeat(edit("def total(x):\n    return x + 1"))
    assert not story.is_repeat(edit("def total(x):\n    return x"))
    assert not story.is_repeat(None)


def test_the_file_a_check_runs_is_not_offered_for_change() -> None:
    task = f"{TASK}\n\ncheck.py:\n```\nassert False\n```"
    body = json.loads(body_of(request(FAILS, task=task), "Be an agent."))
    schema = body["response_format"]["json_schema"]["schema"]
    (write,) = schema["properties"]["call"]["anyOf"]
    assert write["properties"]["path"]["enum"] == ["prices.py"]


def test_what_was_tried_is_told_and_each_further_attempt_is_bolder() -> None:
    given = request(FAILS, CHANGED, FAILS)
    first, second = (json.loads(body_of(given, "x", attempt)) for attempt in (0, 1))
    assert "Tried already, wrong: b" in first["messages"][-1]["content"]
    assert first["temperature"] < second["temperature"]
    assert first["seed"] != second["seed"]


def test_a_command_that_passes_before_any_change_is_not_the_check() -> None:
    other = (("bash", {"command": "python prices.py"}), "<exited with exit code 0>", False)
    given = request(other)
    body = json.loads(body_of(given, "x"))
    assert "it is not what fails" in body["messages"][-1]["content"]
    again = ToolCall(id="1", name="bash", arguments=json.dumps(other[0][1]))
    assert Story(given).is_repeat(again)
    assert not Story(request(CHANGED)).is_repeat(again)


def test_after_a_failed_attempt_the_first_text_is_shown_again() -> None:
    body = json.loads(body_of(request(FAILS, CHANGED, FAILS), "x"))
    assert "prices.py was first:\n```\ndef total(x):" in body["messages"][-1]["content"]
