"""Before each call the session says how full the context is."""

from clikit import bash
from conformance import check_lines
from trimtab.testing.playing import play


async def test_the_context_is_measured_before_each_call_and_corrected_by_the_service() -> None:
    replies = [
        {"tools": [bash("true")], "usage": {"input": 5_000, "output": 10}},
        {"tools": [bash("true")], "usage": {"input": 5_100, "output": 10}},
        {"text": "done", "usage": {"input": 5_200, "output": 10}},
    ]
    played = await play(replies, "go", model="gpt-4o")
    infos = played.of("session.usage_info")
    assert len(infos) == len(played.requests) == 3
    order = [t for t in played.types() if t in ("session.usage_info", "model.call_start")]
    assert order == ["session.usage_info", "model.call_start"] * 3
    assert [info.is_initial for info in infos] == [True, None, None]
    for info in infos:
        parts = (info.system_tokens, info.conversation_tokens, info.tool_definitions_tokens)
        assert sum(parts) == info.current_tokens
        assert info.token_limit == 128_000
    assert 5_000 <= infos[1].current_tokens <= 5_200
    assert [info.messages_length for info in infos] == [1, 3, 5]
    check_lines(played.lines)


async def test_a_model_nobody_describes_is_taken_to_be_small() -> None:
    played = await play(["hi"], "go", model="mystery")
    assert played.of("session.usage_info")[0].token_limit == 64_000
