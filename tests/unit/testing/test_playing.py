"""The names of the test kit, however its modules were imported before."""

import importlib
import types

import pytest

import trimtab.testing
from trimtab.testing import Played, play


@pytest.mark.parametrize("name", trimtab.testing.__all__)
def test_no_name_of_the_kit_is_a_module_once_all_its_modules_are_imported(name: str) -> None:
    for module in ("model_server", "playing", "recording"):
        importlib.import_module(f"trimtab.testing.{module}")
    assert not isinstance(getattr(trimtab.testing, name), types.ModuleType)


async def test_play_gives_what_happened() -> None:
    played = await play(["Hello."], "Hi")
    assert isinstance(played, Played)
    assert played.stop.reason == "end_turn"
