"""The sandbox that a client configures for a session, in our own words."""

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import SandboxSettings


class FileRules(msgspec.Struct, frozen=True, rename="camel"):
    readwrite_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    denied_paths: tuple[str, ...] = ()


class NetworkRules(msgspec.Struct, frozen=True, rename="camel"):
    allowed_hosts: tuple[str, ...] = ()
    blocked_hosts: tuple[str, ...] = ()
    allow_outbound: bool | None = None
    proxy: JsonObject | None = None


class UserPolicy(msgspec.Struct, frozen=True):
    filesystem: FileRules = FileRules()
    network: NetworkRules = NetworkRules()


class SandboxConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The parameter `sandboxConfig`. What this sandbox cannot do is refused, not ignored."""

    enabled: bool
    user_policy: UserPolicy = UserPolicy()
    add_current_working_directory: bool | None = None
    auth: JsonObject | None = None
    credentials: JsonObject | None = None


def read_sandbox(config: SandboxConfig) -> SandboxSettings:
    """Return the settings of the sandbox. Raises `ConfigurationError` for what it cannot do.

    The network is off unless the client allows it: a list of hosts allows those, and
    `allowOutbound` all that are not blocked.
    """
    files, network = config.user_policy.filesystem, config.user_policy.network
    unavailable = {
        "addCurrentWorkingDirectory: false": config.add_current_working_directory is False,
        "userPolicy.network.proxy": network.proxy is not None,
        "auth": any((config.auth or {}).values()),
        "credentials": bool(config.credentials),
    }
    if config.enabled and (named := [name for name, wanted in unavailable.items() if wanted]):
        raise ConfigurationError(
            f"The sandbox here has no {' and no '.join(named)}; leave it out of sandboxConfig."
        )
    off = network.allow_outbound is False
    return SandboxSettings(
        enabled=config.enabled,
        writable=files.readwrite_paths,
        read_only=files.readonly_paths,
        denied=files.denied_paths,
        network="on" if network.allow_outbound and not network.allowed_hosts else "off",
        allowed_hosts=() if off else network.allowed_hosts,
        denied_hosts=network.blocked_hosts,
    )
