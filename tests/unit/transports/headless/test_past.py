"""The past of a session in plain lines."""

from pathlib import Path

from livekit import opened
from trimtab.contracts.options import LimitOptions
from trimtab.transports.headless.past import tell_past
from trimtab.transports.headless.text import Style


async def test_remarks_to_the_model_are_not_told_as_empty_prompts(tmp_path: Path) -> None:
    limits = LimitOptions(max_tokens=1_000_000)
    async with opened(tmp_path, ["Hello."], limits=limits) as (live, watch, _):
        await live.ask("hi")
        told, _ = tell_past(live, Style(append_only=True))
    assert "budget" in {message.source for message in watch.of("user.message")}
    assert "\n> hi\n" in f"\n{told}"
    assert "Hello." in told
    assert "budget>" not in told
