"""The official MCP suite, with the installed program as the client: no expected failures."""

import pytest

from mcp_suite import FIRST, NEXT, check_client

pytestmark = [pytest.mark.foreign("mcp-conformance"), pytest.mark.slow]
COMMON = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]
STATELESS = [
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
]


@pytest.mark.parametrize("scenario", COMMON)
async def test_a_scenario_of_the_released_suite_passes(scenario: str) -> None:
    await check_client(FIRST, scenario)


@pytest.mark.parametrize("scenario", COMMON)
async def test_a_scenario_that_2025_11_25_requires_passes(scenario: str) -> None:
    await check_client(NEXT, scenario, "2025-11-25")


@pytest.mark.parametrize("scenario", STATELESS)
async def test_a_scenario_that_2026_07_28_requires_passes(scenario: str) -> None:
    await check_client(NEXT, scenario, "2026-07-28")
