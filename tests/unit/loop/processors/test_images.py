"""Images are removed from a conversation only if it is too large."""

from typing import Any

import pytest

from loopkit import MemorySession, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.run import Measured, Run
from trimtab.loop.processors.images import ImageRemoval, count_images

PICTURE = {"type": "blob", "data": "AA==", "mimeType": "image/png", "displayName": "x.png"}


def with_image(**options: Any) -> Run:
    run = make_run([], **options)
    run.session.emit(UserMessage(content="look", attachments=[PICTURE]))
    assert count_images(run) == 1
    return run


def removed(run: Run) -> int:
    assert isinstance(run.session, MemorySession)
    return len(run.session.of("trimtab.images_removed"))


@pytest.mark.parametrize("category", ["too_large", "rate_limit", "transport", "unknown"])
async def test_only_an_error_about_size_removes_images(category: str) -> None:
    run = with_image()
    error = ModelError("x", category=category)
    again = await ImageRemoval().on_request_error(run, error, 1)
    assert again is (category == "too_large")
    assert removed(run) == int(again)


@pytest.mark.parametrize(("size", "count"), [(1000, 0), (1001, 1)])
async def test_a_request_over_the_limit_of_bytes_is_made_without_images(
    size: int, count: int
) -> None:
    run = with_image(byte_limit=1000)
    run.measured = Measured(system=0, tools=0, conversation=0, size=size)
    assert await ImageRemoval().before_request(run) is None
    assert removed(run) == count
    assert count_images(run) == 1 - count


async def test_without_images_there_is_nothing_to_remove() -> None:
    run, error = make_run([]), ModelError("x", category="too_large")
    assert await ImageRemoval().on_request_error(run, error, 0) is False
    assert removed(run) == 0
