"""Rewriting a file that another program may write at the same time."""

from toolkit import Bench
from trimtab.tools.rewrite import ATTEMPTS, rewrite
from trimtab.tools.splice import Mismatch, Splice, describe_change


def shout(data: bytes) -> Splice:
    return Splice(data=data.upper(), hunk=describe_change(data.decode(), data.decode().upper()))


async def test_a_file_written_in_between_is_planned_again_from_its_new_content(
    bench: Bench,
) -> None:
    bench.write("a.txt", "first\n")
    seen: list[bytes] = []

    def plan(data: bytes) -> Splice:
        seen.append(data)
        if len(seen) == 1:
            bench.write("a.txt", "second one\n")
        return shout(data)

    result = await rewrite("a.txt", bench, plan, lambda planned: planned.data.decode())
    assert seen == [b"first\n", b"second one\n"]
    assert result.text.startswith("SECOND ONE\n")
    assert bench.path("a.txt").read_bytes() == b"SECOND ONE\n"


async def test_a_file_that_is_written_again_and_again_is_left_alone(bench: Bench) -> None:
    bench.write("a.txt", "0\n")
    seen: list[bytes] = []

    def plan(data: bytes) -> Splice:
        seen.append(data)
        bench.write("a.txt", "x" * len(seen) * 10)
        return shout(data)

    result = await rewrite("a.txt", bench, plan, lambda _: "done")
    assert (result.kind, len(seen)) == ("failure", ATTEMPTS)
    assert "another program" in result.text
    assert bench.path("a.txt").read_text() == "x" * ATTEMPTS * 10


async def test_a_plan_that_does_not_fit_writes_nothing(bench: Bench) -> None:
    bench.write("a.txt", "first\n")
    refused = Mismatch(text="a.txt: no such text", summary="No match")
    result = await rewrite("a.txt", bench, lambda _: refused, lambda _: "done")
    assert (result.kind, result.text, result.summary) == (
        "failure",
        "a.txt: no such text",
        "No match",
    )
    assert bench.path("a.txt").read_text() == "first\n"
