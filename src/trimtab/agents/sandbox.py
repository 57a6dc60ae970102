"""The sandbox of a session: what it was asked to be, what this machine can do, what is said."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import temp_folder
from trimtab.config.files import make_private_dir
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.own import ConnectionRefused
from trimtab.contracts.events.permission import SandboxDecision
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.options import SandboxSettings
from trimtab.contracts.permission import Ask, Policy, Rule

if TYPE_CHECKING:
    from trimtab.config.paths import Home
    from trimtab.contracts.options import SessionOptions
    from trimtab.customize.context import SessionContext
    from trimtab.permissions.firewall import Firewall
    from trimtab.permissions.sandbox_bypass import SandboxBypass
    from trimtab.session.session import Session
    from trimtab.workspace.sandbox.confinement import Refusal
    from trimtab.workspace.sandbox.hosts import HostList
    from trimtab.workspace.sandbox.policy import SandboxPolicy


SURVEY_SECONDS = 5.0


def read_settings(value: object) -> SandboxSettings:
    try:
        return msgspec.convert(value, SandboxSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `sandbox` is not valid: {error}; correct it."
        ) from None


def set_up_sandbox(
    context: "SessionContext", options: "SessionOptions", env: Mapping[str, str]
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
    policy = build_sandbox_policy(context, options, settings)
    if policy.hosts is not None and found.backend != "bubblewrap":
        raise ConfigurationError(
            f"The sandbox here is {found.backend}, which cannot hold commands to a list of hosts; "
            "install bubblewrap, or take the hosts away."
        )
    if settings.auto_allow:
        policy = leave_unasked(context, policy, found.backend)
    confinement = Confinement(found.backend, policy, found.program)
    confinement.on_refusal = report_refusals(context.session)
    context.workspace.shells.confinement = confinement
    context.session.emit(
        SandboxDecision(
            control="process",
            enforcement_point="shell",
            kind="enforcement_state",
            outcome="engaged",
            platform="linux" if sys.platform == "linux" else "other",
            # The vocabulary has no word for Landlock; the sentence below names it.
            backend="bubblewrap" if found.backend == "bubblewrap" else None,
        )
    )
    if confinement.reservation:
        message = f"The sandbox is {found.backend}: {confinement.reservation}."
        context.session.emit(SessionInfo(info_type="sandbox", message=message))
    return policy


def leave_unasked(
    context: "SessionContext", policy: "SandboxPolicy", backend: str
) -> "SandboxPolicy":
    """Commands need no permission, if the sandbox is one that holds them to all of its policy."""
    missing = ""
    if backend != "bubblewrap":
        missing = f"{backend} holds commands back from less than bubblewrap; install bubblewrap"
    elif policy.network:
        missing = "commands have a free network; set sandbox.network to off"
    if not missing:
        return msgspec.structs.replace(policy, unasked=True)
    message = f"The setting sandbox.autoAllow has no effect here: {missing}."
    context.session.emit(SessionWarning(warning_type="sandbox", message=message))
    return policy


def build_sandbox_policy(
    context: "SessionContext", options: "SessionOptions", settings: SandboxSettings
) -> "SandboxPolicy":
    from trimtab.workspace.sandbox.policy import SandboxPolicy, find_git

    def resolve(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(context.workspace.resolve(path) for path in paths)

    git = find_git(options.cwd)
    repository = (git.folder, git.common) if git else ()
    home: Home | None = context.home
    make_private_dir(context.folder.files)
    return SandboxPolicy(
        roots=(os.path.realpath(options.cwd), *map(os.path.realpath, options.permissions.add_dirs)),
        writable=(*repository, *resolve(settings.writable)),
        read_only=resolve(settings.read_only),
        denied=(*resolve(settings.denied), *find_held(context, options)),
        own=(home.config, home.state) if home else (),
        session=(context.folder.files, os.path.join(context.folder.path, "plan.md")),
        temp=temp_folder(context.workspace.child_env) if options.permissions.temp_dir else "",
        network=settings.network == "on" and not settings.denied_hosts,
        hosts=find_hosts(options, settings),
    )


def find_held(context: "SessionContext", options: "SessionOptions") -> list[str]:
    """What is there in the workspace that rules keep from being read."""
    from trimtab.permissions.denied_files import denies_some_reads, search
    from trimtab.permissions.rules import parse_rules

    deny = (*parse_rules(options.permissions.deny), *context.rules.deny)
    if not any(map(denies_some_reads, deny)):
        return []
    held: list[str] = []
    for folder in (options.cwd, *options.permissions.add_dirs):
        found = search(folder, deny, options.cwd, max_seconds=SURVEY_SECONDS)
        held += found.found
        if not found.complete:
            message = (
                f"{folder} is too large to find everything in it that rules keep from being read: "
                "the sandbox holds back only what was found."
            )
            context.session.emit(SessionWarning(warning_type="sandbox", message=message))
    return held


def find_hosts(options: "SessionOptions", settings: SandboxSettings) -> "HostList | None":
    """What may be reached: hosts of the setting, and those a flag allows or denies as addresses.

    A flag for some paths of a host does not open the host: a tunnel to it has no paths.
    """
    everything = ("*:*",) if settings.network == "on" else ()
    given = options.permissions
    allowed = (*settings.allowed_hosts, *everything, *hosts_of(given.allow, whole=True))
    if not allowed or (settings.network == "on" and not settings.denied_hosts):
        return None
    from trimtab.workspace.sandbox.hosts import build_list

    denied = (*settings.denied_hosts, *hosts_of(given.deny, whole=False))
    try:
        return build_list(allowed, denied)
    except ValueError as error:
        raise ConfigurationError(
            f"The setting `sandbox` names a host that is none: {error}; "
            "write example.com, *.example.com or example.com:8080."
        ) from None


def hosts_of(rules: tuple[str, ...], *, whole: bool) -> list[str]:
    """The hosts of rules about addresses; `whole` leaves out those for a part of a host."""
    if not any(rule.startswith("url") for rule in rules):
        return []
    from trimtab.permissions.rules import parse_rules
    from trimtab.permissions.urls import parse_pattern

    found = []
    for rule in parse_rules(rules):
        pattern = parse_pattern(rule.argument or "*") if rule.kind == "url" else None
        if pattern is None or (whole and (pattern.path != "/" or pattern.host == "*")):
            continue
        found.append(f"{pattern.host}:{pattern.port}" if whole else f"{pattern.host}:*")
    return found


def build_guards(
    sandbox: "SandboxPolicy", policy: Policy, ask: Ask | None
) -> "tuple[Firewall | None, SandboxBypass]":
    """Build what holds tools to the sandbox's hosts, and what lets single commands out of it."""
    from trimtab.permissions.sandbox_bypass import SandboxBypass

    bypass = SandboxBypass(policy, ask)
    hosts = sandbox.hosts
    if hosts is None:
        return None, bypass
    from urllib.parse import urlsplit

    from trimtab.permissions.firewall import Firewall
    from trimtab.workspace.sandbox.hosts import canonical

    def find_objection(address: str) -> str:
        try:
            parts = urlsplit(address)
            host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
            hosts.find(canonical(host), parts.port or {"http": 80}.get(parts.scheme, 443))
        except PermissionError as error:
            return str(error)
        except ValueError:
            return "it names no host"
        return ""

    return Firewall(find_objection), bypass


def report_refusals(session: "Session") -> "Callable[[Refusal], None]":
    def report(refusal: "Refusal") -> None:
        session.emit(
            ConnectionRefused(
                host=refusal.host,
                port=refusal.port,
                reason=refusal.reason,
                tool_call_id=refusal.call_id or None,
            )
        )

    return report


def confine(policy: Policy, sandbox: "SandboxPolicy") -> Policy:
    """The same limits for tools that work on files themselves."""
    unread = [Rule(kind, path, "sandbox") for path in sandbox.denied for kind in ("read", "write")]
    unwritten = [Rule("write", path, "sandbox") for path in sandbox.read_only]
    return msgspec.structs.replace(
        policy,
        deny=(*policy.deny, *unread, *unwritten),
        writable=tuple(os.path.realpath(path) for path in sandbox.all_writable),
        confined=sandbox.unasked,
    )
