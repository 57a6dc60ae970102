"""The sandbox that a client configures."""

from typing import Any

import msgspec
import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import SandboxSettings
from trimtab.transports.rpc.sandbox_setup import SandboxConfig, read_sandbox


def read(**config: Any) -> SandboxSettings:
    return read_sandbox(msgspec.convert(config, SandboxConfig))


def test_paths_and_hosts_become_settings_of_the_sandbox() -> None:
    policy = {
        "filesystem": {"readwritePaths": ["a"], "readonlyPaths": ["b"], "deniedPaths": ["c"]},
        "network": {"allowedHosts": ["example.com"], "blockedHosts": ["bad.example.com"]},
    }
    assert read(enabled=True, userPolicy=policy) == SandboxSettings(
        enabled=True,
        writable=("a",),
        read_only=("b",),
        denied=("c",),
        allowed_hosts=("example.com",),
        denied_hosts=("bad.example.com",),
    )


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({}, "off"),
        ({"allowOutbound": True}, "on"),
        ({"allowOutbound": False, "allowedHosts": ["x.example"]}, "off"),
        ({"allowOutbound": True, "allowedHosts": ["x.example"]}, "off"),
    ],
)
def test_the_network_is_off_unless_the_client_allows_it(network: Any, expected: str) -> None:
    settings = read(enabled=True, userPolicy={"network": network})
    assert settings.network == expected
    allowed = network.get("allowedHosts", []) if network.get("allowOutbound") else []
    assert list(settings.allowed_hosts) == allowed


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("addCurrentWorkingDirectory", {"addCurrentWorkingDirectory": False}),
        ("proxy", {"userPolicy": {"network": {"proxy": {"url": "http://proxy.example"}}}}),
        ("auth", {"auth": {"git": True}}),
    ],
)
def test_a_sandbox_that_cannot_be_built_is_refused(name: str, config: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read(enabled=True, **config)
    assert not read(enabled=False, **config).enabled
