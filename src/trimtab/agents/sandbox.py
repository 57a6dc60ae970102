"""Sets up the sandbox of a session: from settings, flags and what this machine supports."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from trimtab.checkout.checkout import temp_folder
from trimtab.config.files import make_private_dir
from trimtab.config.invalid_settings import refuse
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.own import ConnectionRefused
from trimtab.contracts.events.permission import SandboxDecision
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.options import SandboxSettings, SessionOptions
from trimtab.contracts.permission import Ask, Policy, Rule
from trimtab.customize.context import SessionContext
from trimtab.permissions.denied_files import denies_some_reads, search
from trimtab.permissions.firewall import Firewall
from trimtab.permissions.host_questions import HostQuestions
from trimtab.permissions.processor import Permissions
from trimtab.permissions.rules import parse_rules
from trimtab.permissions.sandbox_bypass import SandboxBypass
from trimtab.permissions.urls import parse_pattern
from trimtab.session.session import Session
from trimtab.workspace.sandbox.caches import find_caches
from trimtab.workspace.sandbox.confinement import Confinement, Refusal
from trimtab.workspace.sandbox.detection import detect
from trimtab.workspace.sandbox.hosts import HostList, build_list, canonical
from trimtab.workspace.sandbox.policy import SandboxPolicy, find_git

_SEARCH_SECONDS = 5.0
"""The time to search a folder for files that rules deny."""


def read_settings(value: object) -> SandboxSettings:
    try:
        return msgspec.convert(value, SandboxSettings)
    except msgspec.ValidationError as error:
        raise refuse("sandbox", SandboxSettings, error) from None


def set_up_sandbox(
    context: SessionContext, options: SessionOptions, env: Mapping[str, str]
) -> SandboxPolicy | None:
    """Confine a session's commands if the options ask for it.

    Raises `ConfigurationError` if no backend can enforce the policy.
    """
    settings = options.sandbox_settings or SandboxSettings()
    enabled = settings.enabled if options.sandbox is None else options.sandbox
    if not enabled:
        return None
    found = detect(env)
    if found.backend is None:
        raise ConfigurationError(
            f"No sandbox backend works here: {', '.join(found.reasons)}; "
            "install bubblewrap, or run with --no-sandbox."
        )
    policy = build_sandbox_policy(context, options, settings)
    if policy.hosts is not None and found.backend != "bubblewrap":
        raise ConfigurationError(
            f"The sandbox backend here is {found.backend}, which cannot restrict commands to a "
            "list of hosts; install bubblewrap, or remove the hosts from the settings."
        )
    if settings.auto_allow:
        policy = allow_without_asking(context, policy, found.backend)
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
            # The event vocabulary has no value for Landlock; the message below names it.
            backend="bubblewrap" if found.backend == "bubblewrap" else None,
        )
    )
    if confinement.reservation:
        message = f"The sandbox is {found.backend}: {confinement.reservation}."
        context.session.emit(SessionInfo(info_type="sandbox", message=message))
    return policy


def allow_without_asking(
    context: SessionContext, policy: SandboxPolicy, backend: str
) -> SandboxPolicy:
    """Let commands run without a permission question if the sandbox enforces the whole policy."""
    reason = ""
    if backend != "bubblewrap":
        reason = f"{backend} restricts commands less than bubblewrap; install bubblewrap"
    elif policy.network:
        reason = "commands have unrestricted network access; set sandbox.network to off"
    if not reason:
        return grant_caches(context, msgspec.structs.replace(policy, unasked=True))
    message = f"The setting sandbox.autoAllow has no effect here: {reason}."
    context.session.emit(SessionWarning(warning_type="sandbox", message=message))
    return policy


def grant_caches(context: SessionContext, policy: SandboxPolicy) -> SandboxPolicy:
    """Let the package managers of the project keep caches, apart from those of the person."""
    project = policy.roots[0]
    key = hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    env = context.workspace.child_env
    caches = env.get("XDG_CACHE_HOME") or os.path.join(context.workspace.home, ".cache")
    base = os.path.join(caches, "trimtab", "sandbox", key)
    variables = find_caches(project, base)
    if not variables:
        return policy
    make_private_dir(base)
    return msgspec.structs.replace(
        policy, writable=(*policy.writable, os.path.realpath(base)), variables=variables
    )


def build_sandbox_policy(
    context: SessionContext, options: SessionOptions, settings: SandboxSettings
) -> SandboxPolicy:
    def resolve(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(context.workspace.resolve(path) for path in paths)

    deny = (*parse_rules(options.permissions.deny), *context.rules.deny)
    denied_hosts = (*settings.denied_hosts, *hosts_of(deny, whole=False))
    git = find_git(options.cwd)
    repository = (git.folder, git.common) if git else ()
    home = context.home
    make_private_dir(context.folder.files)
    return SandboxPolicy(
        roots=(os.path.realpath(options.cwd), *map(os.path.realpath, options.permissions.add_dirs)),
        writable=(*repository, *resolve(settings.writable)),
        read_only=resolve(settings.read_only),
        denied=(*resolve(settings.denied), *find_denied_files(context, options)),
        own=(home.config, home.state) if home else (),
        session=(context.folder.files, os.path.join(context.folder.path, "plan.md")),
        temp=temp_folder(context.workspace.child_env) if options.permissions.temp_dir else "",
        network=settings.network == "on" and not denied_hosts,
        hosts=find_hosts(options, settings, denied_hosts),
    )


def find_denied_files(context: SessionContext, options: SessionOptions) -> list[str]:
    """Return the existing files in the workspace that rules deny reading."""
    given = (*parse_rules(options.permissions.deny), *context.rules.deny)
    deny = list(filter(denies_some_reads, given))
    if not deny:
        return []
    denied: list[str] = []
    for folder in (options.cwd, *options.permissions.add_dirs):
        found = search(folder, deny, options.cwd, max_seconds=_SEARCH_SECONDS)
        denied += found.found
        if not found.complete:
            message = (
                f"{folder} is too large to find all files that rules deny reading; the sandbox "
                "hides only those it found. List the others under sandbox.denied in the settings."
            )
            context.session.emit(SessionWarning(warning_type="sandbox", message=message))
    return denied


def find_hosts(
    options: SessionOptions, settings: SandboxSettings, denied: Sequence[str]
) -> HostList | None:
    """Return the hosts that settings and URL rules of flags allow; None if no list applies.

    A rule for some paths of a host does not allow the host, since a tunnel to it has no paths.
    """
    everything = ("*:*",) if settings.network == "on" else ()
    named = hosts_of(parse_rules(options.permissions.allow), whole=True)
    allowed = (*settings.allowed_hosts, *everything, *named)
    if not allowed or (settings.network == "on" and not denied):
        return None
    try:
        return build_list(allowed, denied)
    except ValueError as error:
        raise ConfigurationError(
            f"The setting `sandbox` contains an invalid host: {error}; "
            "write example.com, *.example.com or example.com:8080."
        ) from None


def hosts_of(rules: Sequence[Rule], *, whole: bool) -> list[str]:
    """Return the hosts of URL rules; `whole` skips rules for some paths of a host."""
    found = []
    for rule in rules:
        pattern = parse_pattern(rule.argument or "*") if rule.kind == "url" else None
        if pattern is None or (whole and (pattern.path != "/" or pattern.host == "*")):
            continue
        if whole:
            found.append(f"{pattern.host}:{pattern.port}")
        else:
            # To deny the subdomains of a host denies it as well.
            hosts = dict.fromkeys((pattern.host, pattern.host.removeprefix("*.")))
            found += [f"{host}:*" for host in hosts]
    return found


def build_guards(
    context: SessionContext, permissions: Permissions, ask: Ask | None
) -> tuple[Firewall | None, SandboxBypass]:
    """Build the processors that enforce the list of hosts and let single commands bypass it."""
    sandbox, policy = context.sandbox, permissions.policy
    assert sandbox is not None
    confinement = context.workspace.shells.confinement
    named = any(rule.kind == "url" for rule in policy.allow)
    if confinement is not None and sandbox.unasked and (ask is not None or named):
        confinement.ask_host = HostQuestions(permissions, context.session.emit).ask
    bypass = SandboxBypass(policy, ask, permissions)
    hosts = sandbox.hosts
    if hosts is None:
        return None, bypass

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


def report_refusals(session: Session) -> Callable[[Refusal], None]:
    def report(refusal: Refusal) -> None:
        session.emit(
            ConnectionRefused(
                host=refusal.host,
                port=refusal.port,
                reason=refusal.reason,
                tool_call_id=refusal.call_id or None,
            )
        )

    return report


def confine(policy: Policy, sandbox: SandboxPolicy) -> Policy:
    """Add the sandbox's limits to the permission policy, for tools that access files themselves."""
    denied = [Rule(kind, path, "sandbox") for path in sandbox.denied for kind in ("read", "write")]
    read_only = [Rule("write", path, "sandbox") for path in sandbox.read_only]
    return msgspec.structs.replace(
        policy,
        deny=(*policy.deny, *denied, *read_only),
        writable=tuple(os.path.realpath(path) for path in sandbox.all_writable),
        confined=sandbox.unasked,
    )
