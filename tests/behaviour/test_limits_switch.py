"""A limit in money holds for the model in use, also after the model was changed."""

from pathlib import Path

import pytest

from livekit import opened
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import LimitOptions

USAGE = {"input": 1_000_000, "output": 0}


async def test_another_model_is_paid_by_its_own_price(tmp_path: Path) -> None:
    replies = [{"text": "a", "usage": USAGE}, {"text": "b", "usage": USAGE}]
    async with opened(tmp_path, replies, model="gpt-4.1") as (live, watch, _):
        await live.ask("one")
        live.controls.set_model("gpt-4.1-nano")
        await live.ask("two")
        costs = [call.cost_usd for call in watch.of("trimtab.model_call")]
    assert costs == [pytest.approx(2.0), pytest.approx(0.1)]


async def test_a_model_without_a_price_is_refused_under_a_limit_in_money(tmp_path: Path) -> None:
    limits = LimitOptions(max_usd=5.0)
    async with opened(tmp_path, ["ok"], model="gpt-4.1", limits=limits) as (live, _, _provider):
        with pytest.raises(ConfigurationError, match="No price is known"):
            live.controls.set_model("mystery")
        assert live.model == "gpt-4.1"
