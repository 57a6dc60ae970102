"""The event vocabulary is the published one."""

import pytest

from trimtab.contracts.events import FAMILIES, class_of

NAMES = [name for names in FAMILIES.values() for name in names]


def test_every_listed_event_has_its_struct_in_the_module_that_lists_it() -> None:
    for family, names in FAMILIES.items():
        for name in names:
            cls = class_of(name)
            assert cls is not None
            assert cls.wire_name == name
            assert cls.__module__ == f"trimtab.contracts.events.{family}"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("trimtab.")])
def test_the_official_sdk_knows_every_event_type_that_is_not_our_own(name: str) -> None:
    from copilot.generated.session_events import SessionEventType

    assert SessionEventType(name) is not SessionEventType.UNKNOWN
