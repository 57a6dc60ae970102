"""The event vocabulary is the published one."""

from importlib import import_module

import pytest

from trimtab.contracts.events import FAMILIES, EventData, class_of

NAMES = [name for names in FAMILIES.values() for name in names]


def test_every_listed_event_has_its_struct_in_the_module_that_lists_it() -> None:
    for family, names in FAMILIES.items():
        for name in names:
            cls = class_of(name)
            assert cls is not None
            assert cls.wire_name == name
            assert cls.__module__ == f"trimtab.contracts.events.{family}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_event_struct_of_a_module_is_listed(family: str) -> None:
    module = import_module(f"trimtab.contracts.events.{family}")
    defined = {
        value.wire_name
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, EventData)
        and value.__module__ == module.__name__
    }
    assert defined == set(FAMILIES[family])


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("trimtab.")])
def test_the_official_sdk_knows_every_event_type_that_is_not_our_own(name: str) -> None:
    from copilot.generated.session_events import SessionEventType

    assert SessionEventType(name) is not SessionEventType.UNKNOWN
