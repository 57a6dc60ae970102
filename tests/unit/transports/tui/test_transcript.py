"""The transcript of a session in the terminal."""

from collections.abc import Callable
from typing import Any

import pytest

from trimtab.contracts.text import neutralise
from trimtab.host.parts import Markdown, Notice, Part, ToolInvocation, UserPrompt
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.transcript import Transcript


def test_escape_sequences_of_a_model_are_not_sent_to_the_terminal() -> None:
    transcript = Transcript()
    hostile = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md"
    transcript.apply(Markdown(key="m", text=hostile, delta=hostile, done=True))
    transcript.apply(UserPrompt(key="p", text=hostile))
    text = "".join(plain(line) for line in transcript.take(80))
    assert not [
        character for character in text if ord(character) < 32 or 127 <= ord(character) < 160
    ]
    assert neutralise(hostile) in text


ANSWER = """A paragraph that is long enough to be wrapped in a window of forty columns, twice.

| name | value |
|---|---|
| a | 1 |

```python
first = 1
second = 2
```

The end."""


def _arrive(transcript: Transcript, remark: Callable[[], None], at: int) -> list[str]:
    """Return the lines of an answer that arrives in pieces of 8; a remark is made in its midst."""
    lines: list[str] = []
    for start in range(0, len(ANSWER), 8):
        if start // 8 == at:
            remark()
        delta = ANSWER[start : start + 8]
        part = Markdown(key="m", text=ANSWER[: start + 8], delta=delta, done=False)
        transcript.apply(part)
        lines += map(plain, transcript.take(40))
    transcript.apply(Markdown(key="m", text=ANSWER, done=True))
    transcript.settle()
    return lines + [plain(line) for line in transcript.take(40)]


@pytest.mark.parametrize("level", ["info", "warning", "answer"])
def test_a_remark_in_the_midst_of_an_answer_loses_no_line_of_it(level: Any) -> None:
    whole = [line for line in _arrive(Transcript(), lambda: None, 0) if line.strip()]
    pieces = -(-len(ANSWER) // 8)
    for at in range(pieces):
        transcript = Transcript()
        notice = Notice(key="n", text="REMARK", level=level, kind="test")
        lines = _arrive(transcript, lambda: transcript.apply(notice), at)  # noqa: B023
        (made,) = [line for line in lines if "REMARK" in line]
        words = " ".join(line for line in lines if line != made).split()
        assert words == " ".join(whole).split(), at


def test_a_remark_stands_below_the_rows_that_were_there_and_above_those_that_follow() -> None:
    transcript = Transcript()
    lines = _arrive(transcript, lambda: transcript.say("REMARK"), len(ANSWER) // 8)
    assert lines.index("REMARK") > next(n for n, line in enumerate(lines) if "second" in line)
    assert lines.index("REMARK") < lines.index("The end.")


@pytest.mark.parametrize("kind", ["abort", "retry"])
def test_what_had_arrived_of_an_answer_stands_above_the_remark_that_it_was_cut_off(
    kind: str,
) -> None:
    transcript = Transcript()
    parts: tuple[Part, ...] = (
        Markdown(key="m", text="Half a sen", delta="Half a sen", done=False),
        Notice(key="n", text="Stopped.", level="info", kind=kind),
    )
    for part in parts:
        transcript.apply(part)
    transcript.settle()
    lines = [plain(line) for line in transcript.take(40)]
    assert lines.index("Half a sen") < lines.index("· Stopped.")


def test_what_follows_an_error_in_the_midst_of_an_answer_is_still_written() -> None:
    transcript = Transcript()
    transcript.apply(Markdown(key="m", text="First.\n", delta="First.\n", done=False))
    transcript.apply(Notice(key="n", text="A server failed.", level="error", kind="test"))
    transcript.apply(Markdown(key="m", text="First.\nSecond.", delta="Second.", done=True))
    lines = [plain(line) for line in transcript.take(40) if plain(line)]
    assert lines == ["First.", "Error: A server failed.", "Second."]


def _show_call(**fields: Any) -> list[str]:
    """Return the lines of a call that ran and ended."""
    transcript = Transcript()
    call: dict[str, Any] = {"key": "c", "call_id": "c", "name": "bash"}
    transcript.apply(ToolInvocation(**call, title="bash x", state="running", output="one\ntwo\n"))
    transcript.apply(ToolInvocation(**call, **fields))
    return [plain(line) for line in transcript.take(40)]


def test_a_finished_call_is_one_row_whose_outcome_is_not_cut() -> None:
    title = "bash for name in *; do\n  cat $name | sort | uniq --count\ndone"
    started, completed = "2026-01-01T00:00:00Z", "2026-01-01T00:00:12Z"
    (head,) = _show_call(
        title=title, state="completed", output="x\ny", started=started, completed=completed
    )
    assert head.startswith("● bash for name")
    assert head.endswith("… · 12 s · 2 lines")
    assert len(head) <= 39


def test_what_an_interrupted_command_printed_stays() -> None:
    interrupted = {"state": "interrupted", "error": "The execution was interrupted."}
    lines = _show_call(title="bash x", **interrupted, output="one\ntwo\n")
    assert lines == ["◌ bash x · interrupted", "  │ one", "  │ two"]


def test_a_rejected_call_does_not_repeat_the_answer_and_its_time() -> None:
    lines = _show_call(
        title="bash x",
        state="rejected",
        error="The user rejected this tool call.",
        started="2026-01-01T00:00:00Z",
        completed="2026-01-01T00:00:12Z",
    )
    assert lines == ["● bash x · rejected"]


def test_remarks_that_are_meant_for_the_model_are_not_written() -> None:
    transcript = Transcript()
    transcript.apply(UserPrompt(key="p", text="", source="budget"))
    completed = "The agent general-purpose with the agent_id 1 has completed its work."
    transcript.apply(Notice(key="n", level="info", kind="agent_completed", text=completed))
    assert transcript.take(80) == []
    assert transcript.folded == [("the last message of an agent", completed)]
