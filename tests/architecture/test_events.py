"""The event vocabulary is the published one."""

import inspect
import re
from functools import cache
from importlib import import_module

import msgspec
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


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("trimtab.")])
def test_an_event_has_the_fields_that_the_official_sdk_insists_on(name: str) -> None:
    """A client drops an event without them, and says so only in its log."""
    cls = class_of(name)
    assert cls is not None
    fields = {field.encode_name: field for field in msgspec.structs.fields(cls)}
    optional = [wanted for wanted in required_fields(name) if not fields[wanted].required]
    assert optional == [], f"{name} may leave them out"


def required_fields(name: str) -> list[str]:
    """Return the fields without which the official SDK does not read an event."""
    from copilot.generated import session_events

    member = session_events.SessionEventType(name).name
    source = read_sdk_source()
    found = re.search(rf"SessionEventType\.{member}: data = (\w+)\.from_dict", source)
    assert found is not None
    code = re.search(
        rf"^class {found[1]}\b.*?def from_dict(.*?)^    def ", source, re.MULTILINE | re.DOTALL
    )
    assert code is not None
    lines = [
        line for line in code[1].splitlines() if "obj.get(" in line and "from_none" not in line
    ]
    return [
        line.partition('obj.get("')[2].partition('"')[0]
        for line in lines
        if "= obj.get(" not in line
    ]


@cache
def read_sdk_source() -> str:
    """Return the source of the SDK's events, which takes `inspect` half a second a class."""
    from copilot.generated import session_events

    return inspect.getsource(session_events)
