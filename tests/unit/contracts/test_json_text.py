"""JSON of texts that UTF-8 cannot encode."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.json_text import decode_json, encode_json, indent_json


@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner, max_size=3)))
def test_every_text_comes_back_as_it_was(value: object) -> None:
    data = encode_json(value)
    assert b"\n" not in data
    assert decode_json(data, object) == value
    assert decode_json(indent_json(value), object) == value


@pytest.mark.parametrize("data", [b"", b"{", b'"\\udcff', b"[" * 100_000, b"\xff"])
def test_what_is_not_json_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(data, object)


def test_a_value_of_another_type_is_a_validation_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_json(b'["\\udcff"]', dict)
