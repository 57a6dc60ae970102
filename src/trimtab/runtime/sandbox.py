"""The sandbox of a session: what it was asked to be, what this machine can do, what is said."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.permission import SandboxDecision
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.permission import Policy, Rule
from trimtab.runtime.surroundings import temp_folder

if TYPE_CHECKING:
    from trimtab.config.paths import Home
    from trimtab.runtime.build import Place
    from trimtab.runtime.options import SessionOptions
    from trimtab.workspace.sandbox.policy import SandboxPolicy


class SandboxSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `sandbox`. Paths may begin with `~`, or be relative to the workspace."""

    enabled: bool = False
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    network: Literal["off", "on"] = "off"


def read_settings(value: object) -> SandboxSettings:
    try:
        return msgspec.convert(value, SandboxSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `sandbox` is not valid: {error}; correct it."
        ) from None


def set_up_sandbox(
    place: "Place", options: "SessionOptions", env: Mapping[str, str]
) -> "SandboxPolicy | None":
    """Confine a session's commands if that is wanted; without a working backend it cannot start."""
    settings = options.sandbox_settings or SandboxSettings()
    wanted = settings.enabled if options.sandbox is None else options.sandbox
    if not wanted:
        return None
    from trimtab.workspace.sandbox.confinement import Confinement
    from trimtab.workspace.sandbox.detection import detect

    found = detect(env)
    if found.backend is None:
        raise ConfigurationError(
            f"No sandbox works here: {', '.join(found.reasons)}; "
            "install bubblewrap, or run with --no-sandbox."
        )
    policy = build_sandbox_policy(place, options, settings)
    confinement = Confinement(found.backend, policy, found.program)
    place.workspace.shells.confinement = confinement
    place.session.emit(
        SandboxDecision(
            control="setting" if options.sandbox is None else "flag",
            enforcement_point="shell",
            kind=found.backend,
            outcome="partial" if confinement.reservation else "enforced",
            platform=sys.platform,
        )
    )
    if confinement.reservation:
        message = f"The sandbox is {found.backend}: {confinement.reservation}."
        place.session.emit(SessionInfo(info_type="sandbox", message=message))
    return policy


def build_sandbox_policy(
    place: "Place", options: "SessionOptions", settings: SandboxSettings
) -> "SandboxPolicy":
    from trimtab.workspace.sandbox.policy import SandboxPolicy, find_git

    def resolve(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(place.workspace.resolve(path) for path in paths)

    git = find_git(options.cwd)
    repository = (git.folder, git.common) if git else ()
    home: Home | None = place.home
    os.makedirs(place.folder.files, exist_ok=True)
    return SandboxPolicy(
        roots=(os.path.realpath(options.cwd), *map(os.path.realpath, options.permissions.add_dirs)),
        writable=(*repository, *resolve(settings.writable)),
        read_only=resolve(settings.read_only),
        denied=resolve(settings.denied),
        own=(home.config, home.state) if home else (),
        session=(place.folder.files, os.path.join(place.folder.path, "plan.md")),
        temp=temp_folder() if options.permissions.temp_dir else "",
        network=settings.network == "on",
    )


def confine(policy: Policy, sandbox: "SandboxPolicy") -> Policy:
    """The same limits for tools that work on files themselves."""
    unread = [Rule(kind, path, "sandbox") for path in sandbox.denied for kind in ("read", "write")]
    unwritten = [Rule("write", path, "sandbox") for path in sandbox.read_only]
    return msgspec.structs.replace(
        policy,
        deny=(*policy.deny, *unread, *unwritten),
        writable=tuple(os.path.realpath(path) for path in sandbox.all_writable),
    )
