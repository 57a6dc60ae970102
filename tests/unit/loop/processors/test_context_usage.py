"""The size of the context is reported before each model call."""

from loopkit import EchoTool, call, drained, make_run
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.providers.meter import ContextMeter


async def test_the_first_report_alone_is_marked_as_the_first() -> None:
    run = make_run(
        [{"tools": [call(text="a")]}, {"tools": [call(text="b")]}, "done"],
        "go",
        tools=[EchoTool()],
        processors=[ContextUsage(ContextMeter("scripted"), 1_000)],
    )
    reports = (await drained(run)).of("session.usage_info")
    assert [report.is_initial for report in reports] == [True, None, None]
    assert [report.messages_length for report in reports] == [1, 3, 5]
    assert reports[0].token_limit == 1_000
    assert reports[2].current_tokens > reports[0].current_tokens


async def test_the_models_own_limit_is_reported_where_it_is_known() -> None:
    run = make_run(
        ["done"],
        "go",
        processors=[ContextUsage(ContextMeter("scripted"), 1_000)],
        prompt_limit=5_000,
    )
    (report,) = (await drained(run)).of("session.usage_info")
    assert report.token_limit == 5_000
