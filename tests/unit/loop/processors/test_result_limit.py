"""A tool result takes at most half of the prompt."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.result_limit import ResultLimit, shorten
from trimtab.providers.tokens import counter_for


class Disk:
    """The little a result limit asks of a workspace."""

    def __init__(self, folder: str, error: OSError | None = None) -> None:
        self.files = folder
        self.workspace = self
        self._error = error

    async def write(self, path: str, data: bytes) -> None:
        if self._error:
            raise self._error
        Path(path).write_bytes(data)


async def count(model: str, text: str) -> int:
    return counter_for(model).text(text)


async def never(model: str, text: str) -> int:
    raise AssertionError("nothing needs to be counted")


async def limited(text: str, limit: int, disk: Any, count: Any = count, **result: Any) -> Any:
    """Return the text for the model in a window of twice the limit, and the event."""

    async def give(_: Any) -> ToolResult:
        return ToolResult(text=text, **result)

    run = make_run(
        [{"tools": [call(text="x")]}, "done"],
        "go",
        tools=[EchoTool(on_run=give)],
        processors=[ResultLimit(count, 64_000)],
        prompt_limit=2 * limit,
        tool_context=lambda _run, _call: disk,
    )
    session = await drained(run)
    (told,) = session.of("tool.execution_complete")
    shown = next(
        message.text for message in session.conversation.messages if hasattr(message, "call_id")
    )
    return shown, told


@pytest.mark.parametrize(
    "text",
    [
        "0123456789" * 2000,
        "漢字仮名交じり文" * 2000,
        "\x01\x02" * 9000,
        "🫨🧿" * 4000,
        "plain words " * 9000,
    ],
    ids=["digits", "cjk", "control", "emoji", "words"],
)
async def test_a_result_over_half_of_the_prompt_loses_its_middle(tmp_path: Path, text: str) -> None:
    shown, _ = await limited(text, 1500, Disk(str(tmp_path)))
    tokens = counter_for("scripted").text(shown)
    assert 1200 < tokens <= 1500, "as much as possible is kept"
    assert shown.startswith(text[:100])
    assert shown.endswith(text[-100:])
    (saved,) = tmp_path.iterdir()
    assert saved.read_text() == text
    assert f"The whole result is in {saved};" in shown
    head, _, rest = shown.partition("\n[")
    left_out, _, tail = rest.partition(" characters left out")
    assert len(head) + int(left_out.replace(",", "")) + len(tail.partition("]\n")[2]) == len(text)


@settings(max_examples=60)
@given(
    parts=st.lists(st.tuples(st.text(min_size=1, max_size=8), st.integers(1, 400)), max_size=6),
    limit=st.integers(120, 900),
)
async def test_whatever_the_text_the_limit_holds(parts: list[tuple[str, int]], limit: int) -> None:
    text = "".join(part * times for part, times in parts)
    shown, _ = await limited(text, limit, Disk("", OSError(28, "No space left on device")))
    counted = counter_for("scripted").text
    assert counted(shown) <= limit
    assert (shown == text) == (counted(text) <= limit)


async def test_short_results_are_not_counted(tmp_path: Path) -> None:
    text = "9" * 6000
    assert (await limited(text, 32_000, Disk(str(tmp_path)), never))[0] == text
    assert not os.listdir(tmp_path)


async def test_a_full_disk_is_said(tmp_path: Path) -> None:
    disk = Disk(str(tmp_path), OSError(28, "No space left on device"))
    shown, _ = await limited("7" * 9000, 500, disk)
    assert "could not be saved (No space left on device)" in shown


async def test_what_a_failed_call_says_is_limited_too(tmp_path: Path) -> None:
    shown, told = await limited("7" * 9000, 500, Disk(str(tmp_path)), kind="failure", summary="no")
    assert counter_for("scripted").text(shown) <= 500
    assert told.error["message"] == "no"


async def test_what_an_exception_says_is_limited(tmp_path: Path) -> None:
    async def fail(_: Any) -> None:
        raise ValueError("9" * 100_000)

    run = make_run([{"tools": [call(text="x")]}, "done"], "go", tools=[EchoTool(on_run=fail)])
    session = await drained(run)
    shown = next(
        message.text for message in session.conversation.messages if hasattr(message, "call_id")
    )
    assert len(shown) < 5_000
    assert "characters left out" in shown


def test_nothing_may_be_left_of_a_text() -> None:
    assert shorten("abcdef", 1, "Gone.").startswith("\n[6 characters left out")


async def test_a_text_that_is_surely_too_long_is_cut_before_it_is_counted(tmp_path: Path) -> None:
    counted: list[int] = []

    async def note(model: str, text: str) -> int:
        counted.append(len(text))
        return await count(model, text)

    await limited("word " * 400_000, 1500, Disk(str(tmp_path)), note)
    assert max(counted) < 200_000


async def test_few_characters_may_be_many_tokens(tmp_path: Path) -> None:
    text = "🫨🧿" * 500
    assert counter_for("scripted").text(text) > 1500
    shown, _ = await limited(text, 1500, Disk(str(tmp_path)))
    assert counter_for("scripted").text(shown) <= 1500
