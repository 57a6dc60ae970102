"""The official MCP suite, with the installed program as the client: no expected failures."""

import pytest
import yaml

from mcp_suite import FIRST, NEXT, check_client
from programkit import FOREIGN

pytestmark = [pytest.mark.foreign("mcp-conformance"), pytest.mark.slow]
SIGN_IN = [
    *(f"auth/metadata-{name}" for name in ("default", "var1", "var2", "var3")),
    "auth/basic-cimd",
    *(f"auth/scope-{name}" for name in ("from-www-authenticate", "from-scopes-supported")),
    *(f"auth/scope-{name}" for name in ("omitted-when-undefined", "step-up", "retry-limit")),
    *(f"auth/token-endpoint-auth-{name}" for name in ("basic", "post", "none")),
    "auth/pre-registration",
]
HANDSHAKE = [
    *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
    *SIGN_IN,
]
STATELESS = [
    *("tools_call", "request-metadata", *SIGN_IN, "auth/resource-mismatch"),
    *("auth/offline-access-scope", "auth/offline-access-not-supported"),
    "auth/authorization-server-migration",
    *(f"auth/iss-{name}" for name in ("supported", "not-advertised", "supported-missing")),
    *(f"auth/iss-{name}" for name in ("wrong-issuer", "unexpected", "normalized")),
    *("auth/metadata-issuer-mismatch", "sep-2322-client-request-state"),
    *("http-standard-headers", "http-custom-headers", "http-invalid-tool-headers"),
    "json-schema-ref-no-deref",
]
RELEASED = [
    *HANDSHAKE,
    "auth/2025-03-26-oauth-endpoint-fallback",
    *("auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported"),
    *("auth/client-credentials-jwt", "auth/client-credentials-basic"),
]


def required(revision: str) -> list[str]:
    folder = FOREIGN / NEXT / "node_modules" / "@modelcontextprotocol" / "conformance"
    listed: list[str] = yaml.safe_load((folder / f"requirements/{revision}.yaml").read_text())[
        "client"
    ]
    return listed


def test_these_are_the_scenarios_that_the_revisions_require() -> None:
    assert required("2025-11-25") == HANDSHAKE
    assert required("2026-07-28") == STATELESS


@pytest.mark.parametrize("scenario", RELEASED)
async def test_a_scenario_of_the_released_suite_passes(scenario: str) -> None:
    await check_client(FIRST, scenario)


async def test_the_metadata_of_2025_03_26_is_used_if_its_issuer_is_right() -> None:
    """The released suite's own server names another issuer, which a client must not accept."""
    await check_client(NEXT, "auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26")


@pytest.mark.parametrize("scenario", HANDSHAKE)
async def test_a_scenario_that_2025_11_25_requires_passes(scenario: str) -> None:
    await check_client(NEXT, scenario, "2025-11-25")


@pytest.mark.parametrize("scenario", STATELESS)
async def test_a_scenario_that_2026_07_28_requires_passes(scenario: str) -> None:
    await check_client(NEXT, scenario, "2026-07-28")
