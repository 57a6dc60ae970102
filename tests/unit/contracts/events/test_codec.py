"""Encoding and decoding events: nothing is lost, and every reader splits the lines alike."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.events import FAMILIES, Event, class_of
from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.session import SessionInfo

texts = st.text(st.characters(codec=None), max_size=40)  # lone surrogates included


def event(data: Any, wire_name: str = "session.info") -> Event:
    return Event(type=wire_name, data=data, id="i", timestamp="t", parent_id=None)


@given(texts)
def test_any_text_survives_and_stays_on_one_line(text: str) -> None:
    line = encode(event(SessionInfo(info_type="x", message=text)))
    assert decode(line).data.message == text
    assert len(line.decode("utf-8").splitlines()) == 1
    assert not any(byte < 0x20 for byte in line)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_events_of_unknown_type_survive_in_meaning(data: dict[str, Any]) -> None:
    line = json.dumps(
        {"type": "future.thing", "data": data, "id": "i", "timestamp": "t", "parentId": None}
    ).encode()
    assert json.loads(encode(decode(line))) == json.loads(line)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"session.info","data":{"infoType":"x"},"id":"i","timestamp":"t","parentId":null}',
        b'{"type":"session.info","data":{"infoType":7,"message":"x"},"id":"i","timestamp":"t","parentId":null}',
    ],
)
def test_a_known_type_with_other_fields_keeps_them_as_they_are(line: bytes) -> None:
    decoded = decode(line)
    assert isinstance(decoded.data, dict)
    assert json.loads(encode(decoded)) == json.loads(line)


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b'{"type":1}', b"x", b"\0", b"[" * 100_000, b'"type"', b"null"]
)
def test_what_is_no_event_is_refused_with_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)


def test_what_other_writers_leave_out_or_set_to_null_is_accepted() -> None:
    decoded = decode(b'{"type":"session.idle","data":{},"ephemeral":null}')
    assert (decoded.type, decoded.ephemeral, decoded.parent_id) == ("session.idle", False, None)


def test_raw_newlines_in_strings_are_read() -> None:
    assert decode(b'{"type":"q","data":{"a":"x\ny"}}').data == {"a": "x\ny"}


@pytest.mark.parametrize("wire_name", [name for names in FAMILIES.values() for name in names])
def test_every_struct_writes_wire_names_and_leaves_out_what_is_not_set(wire_name: str) -> None:
    import msgspec

    cls = class_of(wire_name)
    assert cls is not None
    fields = msgspec.structs.fields(cls)
    samples: dict[type, Any] = {str: "s", int: 1, float: 1.5, bool: True}
    given_fields = {
        f.name: samples.get(f.type, {}) if not str(f.type).startswith("list") else []
        for f in fields
        if f.required
    }
    plain = json.loads(encode(event(cls(**given_fields), wire_name)))["data"]
    assert set(plain) == {f.encode_name for f in fields if f.required}
    assert not any("_" in name for name in plain)
