"""The official MCP suite, with the installed program as the client: no expected failures."""

import sys
from types import ModuleType

import pytest
import yaml

import mcp_fixtures
import mcp_fixtures_stateless
from clikit import Cli
from mcp_suite import FIRST, NEXT, check_client, check_server, run_suite
from mcpkit import configure, serving_mcp
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
    "auth/cross-app-access-complete-flow",
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


OWN = [
    *("server-initialize", "ping", "logging-set-level", "tools-list", "resources-list"),
    *("prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"),
]
OWN_STATELESS = [
    *("tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams"),
    *("sep-2164-resource-not-found", "dns-rebinding-protection", "caching"),
    *("http-header-validation",),
]
"""The scenarios that need no tools, resources or prompts of the suite's own."""
NEEDS_FIXTURE = "Not testable: server does not list the diagnostic tool"


async def test_our_own_server_passes_what_needs_no_fixture(cli: Cli) -> None:
    async with serving_mcp(cli, "serve") as url:
        for scenario in OWN:
            assert not await check_server(FIRST, url, scenario)
        assert not await check_server(NEXT, url, "server-session-lifecycle")
        for scenario in OWN_STATELESS:
            assert not await check_server(NEXT, url, scenario, "2026-07-28")
        output = await check_server(NEXT, url, "server-stateless", "2026-07-28")
        failures = [line for line in output.splitlines() if line.lstrip().startswith("Error:")]
        assert len(failures) == 4
        assert all(NEEDS_FIXTURE in line for line in failures), output


THROUGH_GATEWAY = [
    *("tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-error"),
    *("tools-call-with-progress", "server-sse-multiple-streams", "resources-list"),
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("sep-2164-resource-not-found", "prompts-list", "prompts-get-simple", "prompts-get-with-args"),
    *("prompts-get-embedded-resource", "prompts-get-with-image", "completion-complete"),
    *("dns-rebinding-protection", "caching", "http-header-validation"),
    *("input-required-result-unsupported-methods", "input-required-result-ignore-extra-params"),
]
"""The scenarios of 2026-07-28 for which the server behind the gateway has what the suite wants."""


async def test_the_gateway_serves_an_older_server_at_2026_07_28(cli: Cli) -> None:
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", fixtures=entry)
    async with serving_mcp(cli, "gateway", "fixtures") as url:
        for scenario in THROUGH_GATEWAY:
            assert not await check_server(NEXT, url, scenario, "2026-07-28")


@pytest.mark.parametrize(
    ("fixtures", "revision"),
    [
        (mcp_fixtures, "2025-11-25"),
        (mcp_fixtures_stateless, "2025-11-25"),
        (mcp_fixtures_stateless, "2026-07-28"),
    ],
    ids=["older-both", "older-client", "stateless-both"],
)
async def test_everything_that_a_revision_requires_of_servers_passes_the_gateway(
    cli: Cli, fixtures: ModuleType, revision: str
) -> None:
    entry = {"command": sys.executable, "args": [fixtures.__file__]}
    configure(cli.home / "mcp-config.json", fixtures=entry)
    async with serving_mcp(cli, "gateway", "fixtures") as url:
        code, output = await run_suite(NEXT, "server", "--url", url, "--requirements", revision)
    assert code == 0, output
