from typing import Any

import pytest

from trimtab.providers.wires.anthropic_reader import MessagesReader
from trimtab.providers.wires.chat_reader import ChatReader
from trimtab.providers.wires.citations import CitationBuilder, read_annotations, read_citations

CITATION = (
    b'{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":'
    b'{"type":"char_location","cited_text":"pull","document_title":"T",'
    b'"start_char_index":1,"end_char_index":5}}}'
)


def test_a_streamed_citation_belongs_to_its_block() -> None:
    reader = MessagesReader()
    for data in (
        b'{"type":"message_start","message":{"id":"m","model":"x"}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Moon."}}',
        CITATION,
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
        b'{"type":"message_stop"}',
    ):
        reader.feed(data)
    assert reader.finish().citations == {
        "sources": [{"id": "source-1", "provider": "anthropic", "title": "T"}],
        "spans": [
            {
                "startIndex": 0,
                "endIndex": 5,
                "references": [
                    {
                        "sourceId": "source-1",
                        "citedText": "pull",
                        "location": {"type": "char", "startIndex": 1, "endIndex": 5},
                    }
                ],
            }
        ],
    }


NOTE = (
    b'{"type":"url_citation","url_citation":'
    b'{"title":"T","url":"https://a.test","start_index":0,"end_index":4}}'
)


@pytest.mark.parametrize(
    "frames",
    [
        (
            b'{"choices":[{"delta":{"content":"Moon."}}]}',
            b'{"choices":[{"delta":{"annotations":[%b]},"finish_reason":"stop"}]}' % NOTE,
        ),
        (
            b'{"choices":[{"message":{"content":"Moon.","annotations":[%b]},'
            b'"finish_reason":"stop"}]}' % NOTE,
        ),
    ],
    ids=["streamed", "whole"],
)
def test_annotations_of_chat_completions_are_citations(frames: tuple[bytes, ...]) -> None:
    reader = ChatReader()
    for data in frames:
        reader.feed(data)
    assert reader.finish().citations == {
        "sources": [
            {"id": "source-1", "provider": "openai", "title": "T", "url": "https://a.test"}
        ],
        "spans": [{"startIndex": 0, "endIndex": 4, "references": [{"sourceId": "source-1"}]}],
    }


@pytest.mark.parametrize("odd", ["[1, null]", "7", '"x"', "{}", '[{"type": "url_citation"}]'])
def test_odd_annotations_of_chat_completions_are_left_out(odd: str) -> None:
    reader = ChatReader()
    frame = '{"choices":[{"message":{"content":"Moon.","annotations":%s},"finish_reason":"stop"}]}'
    reader.feed((frame % odd).encode())
    reply = reader.finish()
    assert (reply.message.text, reply.citations) == ("Moon.", None)


def test_a_source_that_is_cited_twice_is_listed_once() -> None:
    builder = CitationBuilder("openai")
    note = {"type": "url_citation", "url": "https://a.test", "start_index": 0, "end_index": 2}
    file = {"type": "file_citation", "filename": "a.md", "index": 9}
    read_annotations(builder, [note, {**note, "end_index": 3}, file], 10, 5)
    built = builder.build()
    assert built is not None
    assert [source.get("url", source.get("path")) for source in built["sources"]] == [
        "https://a.test",
        "a.md",
    ]
    spans = [(span["startIndex"], span["endIndex"]) for span in built["spans"]]
    assert spans == [(10, 12), (10, 13), (15, 15)]


@pytest.mark.parametrize("odd", [None, 7, "x", [1, None, {}], [{"type": "url_citation"}]])
def test_odd_citations_are_left_out(odd: Any) -> None:
    builder = CitationBuilder("openai")
    read_annotations(builder, odd, 0, 5)
    read_citations(builder, odd, (0, 5))
    assert builder.build() is None
