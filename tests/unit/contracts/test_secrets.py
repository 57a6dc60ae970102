"""Masking secrets: all strings, never the structure, however a stream is cut."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.events.assistant import AssistantMessage, AssistantMessageDelta
from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.secrets import MASK, TOKEN_HINTS, Masker, find_secrets
from trimtab.session.masking import EventMask

ALPHABET = 'ab0_-/+."\\\n\té\u2028😀 '
values = st.text(alphabet=ALPHABET, min_size=4, max_size=30).filter(lambda s: len(s.strip()) >= 4)
GITHUB = "ghp_" + "a1B2c3D4e5" * 4
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEpAIB/+==\n-----END PRIVATE KEY-----"
shaped = st.sampled_from(
    [
        GITHUB,
        "github_pat_" + "A1_" * 20,
        "sk-ant-api03-" + "x9Yz_" * 8,
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        KEY,
    ]
)
texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


def event_of(data: Any) -> Event:
    return Event(type="x.y", data=data, id="an-id", timestamp="now", parent_id=None)


def shape_of(value: Any) -> Any:
    """Return the structure of some data without its strings."""
    if isinstance(value, dict):
        return {key: shape_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape_of(inner) for inner in value]
    return type(value)


def all_texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in all_texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in all_texts(inner)]
    return [value] if isinstance(value, str) else []


@given(secret=values, before=texts, after=texts, key=texts)
def test_a_known_secret_is_in_no_text_of_an_event_and_keys_stay(
    secret: str, before: str, after: str, key: str
) -> None:
    mask = EventMask(Masker([secret]))
    inner = [{f"x{key}": before + secret + after}, 1, None, True]
    data = {secret: inner, "id": secret, "arguments": encode(event_of({"a": secret})).decode()}
    event = event_of(data)
    seen, shown, line = mask.mask_event(event, encode(event))
    for event in (seen, shown, decode(line)):
        assert shape_of(event.data) == shape_of(data)
        assert event.data["id"] == secret
        found = all_texts({name: value for name, value in event.data.items() if name != "id"})
        hidden = secret.strip()
        assert not any(hidden in text for text in found if hidden not in MASK)


@given(secret=shaped, before=texts, after=texts)
def test_what_looks_like_a_secret_is_hidden_from_others_and_not_from_the_model(
    secret: str, before: str, after: str
) -> None:
    event = event_of({"content": f"{before} {secret} {after}"})
    seen, shown, _ = EventMask(Masker()).mask_event(event, encode(event))
    assert seen.data == event.data
    assert secret not in shown.data["content"]


@given(st.recursive(texts | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))  # fmt: skip
def test_an_event_without_secrets_is_the_same_object(data: Any) -> None:
    event = event_of({"content": data})
    masked = EventMask(Masker(["a secret nobody writes"])).mask_event(event, encode(event))
    assert masked[1].data == event.data


@given(secret=values | shaped, before=texts, after=texts, data=st.data())
def test_a_streamed_secret_is_hidden_however_it_is_cut(
    secret: str, before: str, after: str, data: st.DataObject
) -> None:
    text = f"{before} {secret} {after}"
    masker = Masker([secret])
    mask = EventMask(masker)
    streamed, place = "", 0

    def show(piece: Any) -> str:
        event = Event(type=piece.wire_name, data=piece, id="i", timestamp="t", parent_id=None)
        shown: str = mask.mask_event(event, encode(event))[1].data.delta_content
        return shown

    while place < len(text):
        size = data.draw(st.integers(1, 12))
        piece = AssistantMessageDelta(message_id="m", delta_content=text[place : place + size])
        joined = mask.mask_piece(piece)
        streamed += show(joined) if joined else ""
        place += size
    rest = mask.flush(AssistantMessage(message_id="m", content=text))
    streamed += show(rest) if rest else ""
    assert secret.strip() not in streamed.replace(MASK, "")
    if secret.strip() not in before + after:
        assert MASK in streamed


def test_opaque_fields_reach_the_model_service_as_they_are() -> None:
    opaque = {"reasoningOpaque": GITHUB, "encryptedContent": GITHUB, "toolCallId": GITHUB}
    event = event_of({**opaque, "data": GITHUB, "content": GITHUB})
    _, shown, _ = EventMask(Masker()).mask_event(event, encode(event))
    assert shown.data == {**opaque, "data": GITHUB, "content": MASK}


def test_ordinary_text_is_left_alone() -> None:
    text = "task-list risk-free sk-some-kebab-case-without-numbers eyJust AKIA hf_x ---- xoxo -----"
    assert Masker().mask_text(text) == text


def test_short_values_are_no_secrets_and_a_value_inside_another_is_hidden_whole() -> None:
    env = {"A_TOKEN": "x", "B_TOKEN": "abcdefgh", "C_TOKEN": "abcdefghijkl", "KEY": "1234567890"}
    masker = find_secrets(env, ["D"], ["KEY"])
    assert masker.mask_text("x abcdefghijkl abcdefgh 1234567890") == f"x {MASK} {MASK} {MASK}"
    assert masker.mask_named("abcdefgh 1234567890") == f"abcdefgh {MASK}"


@pytest.mark.parametrize("name", ["data", "id", "type", "userId", "account_id", "signature"])
@pytest.mark.parametrize("place", ["arguments", "toolArgs"])
def test_no_name_keeps_a_secret_in_what_somebody_wrote(name: str, place: str) -> None:
    secret = "s3cret-0123456789"
    event = event_of({place: {name: f"see {secret}", "deep": [{name: secret}]}})
    _, shown, line = EventMask(Masker([secret])).mask_event(event, encode(event))
    assert secret.encode() not in line
    assert secret not in str(shown.data)


HINTS = re.compile(
    rb"gh[pousr]_|github_pat_|glpat-|npm_|hf_|sk[-_]|A[KS]IA|AIza|xox|eyJ|PRIVATE KEY-"
)
PARTS = (*(b"gh", b"p_", b"hf_", b"github_", b"pat_", b"glp", b"at-", b"np", b"pm_", b"n", b"s"),)
MORE = (*(b"k-", b"k_", b"A", b"KIA", b"SIA", b"Iza", b"x", b"ox", b"ey", b"J", b"PRI", b"VATE"),)
pieces = st.lists(st.sampled_from((*PARTS, *MORE, b" KEY-", b"a", b"_", b"-")), max_size=8)


@given(pieces)
def test_the_first_test_of_a_line_finds_the_beginning_of_every_token(parts: list[bytes]) -> None:
    line = b"".join(parts)
    assert bool(re.search(TOKEN_HINTS, line)) == bool(HINTS.search(line))
