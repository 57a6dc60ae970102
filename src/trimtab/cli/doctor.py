"""Checks an installation (`trimtab doctor`): what works, what does not, and how to fix it.

Contacts the model service that a session would use, and nothing else.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from trimtab.agents.sandbox import read_settings
from trimtab.checkout.checkout import find_checkout
from trimtab.config.paths import POLICY, Home, find_home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import ModelError, TrimtabError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.provider import ListsModels
from trimtab.contracts.text import count
from trimtab.customize.customizations import Customizations
from trimtab.hooks.dry_run import list_hooks
from trimtab.models.choose import LOCAL, Chosen, ModelChooser
from trimtab.policy.exclusions import read_policy, to_rules
from trimtab.policy.folder_trust import FolderTrust
from trimtab.policy.rule_files import REPOSITORY, read_exclusion, read_rules
from trimtab.policy.unprotected import find_uncovered
from trimtab.providers.embedded.weights import find_weights, is_usable
from trimtab.providers.names import did_you_mean, same_model
from trimtab.runtime.options import resolve
from trimtab.version import __version__
from trimtab.workspace.sandbox.detection import detect
from trimtab.workspace.sandbox.fence_detection import BACKENDS, FENCE_NAMES, detect_fence
from trimtab.workspace.search import find_ripgrep

_MAX_LISTED = 5
"""The number of paths a message lists."""
_MIN_FREE_BYTES = 200 * 1024 * 1024
"""The free space that the disk with the sessions should have."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the report; `advice` says what to do if the state is not `ok`."""

    subject: str
    state: Literal["ok", "warn", "fail"]
    message: str
    advice: str = ""


def ok(subject: str, message: str) -> Finding:
    return Finding(subject=subject, state="ok", message=message)


def warn(subject: str, message: str, advice: str) -> Finding:
    return Finding(subject=subject, state="warn", message=message, advice=advice)


def fail(subject: str, message: str, advice: str) -> Finding:
    return Finding(subject=subject, state="fail", message=message, advice=advice)


async def run_checks(env: Mapping[str, str], cwd: str, *, offline: bool = False) -> list[Finding]:
    """Check the machine, the home folder and the current folder."""
    findings = [*check_program(), check_search(env), check_git(env)]
    try:
        home = find_home(env)
    except TrimtabError as error:
        return [
            *findings,
            fail("home", error.message, "Correct it and run trimtab doctor again."),
        ]
    findings += [check_home(home), check_disk_space(home)]
    findings += [await check_model(env, home, cwd, offline), check_embedded(env)]
    findings += [check_fence(env, home), *check_sandbox(env, cwd), *check_settings(home)]
    return findings + await check_folder(env, home, cwd)


def check_program() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", f"{version} ({sys.executable})")
    yield ok("install", f"trimtab {__version__} ({os.path.dirname(os.path.dirname(__file__))})")


def check_search(env: Mapping[str, str]) -> Finding:
    try:
        return ok("search", find_ripgrep(env))
    except TrimtabError as error:
        return fail("search", error.message, "Install ripgrep.")


def check_git(env: Mapping[str, str]) -> Finding:
    found = shutil.which("git", path=env.get("PATH"))
    if found:
        return ok("git", found)
    return warn("git", "not found on PATH", "Install git to use worktrees and to see changes.")


def check_home(home: Home) -> Finding:
    for folder in dict.fromkeys((home.config, home.state)):
        if not os.access(nearest_existing(folder), os.W_OK | os.X_OK):
            advice = "Make it writable, or set COPILOT_HOME to a folder that is."
            return fail("home", f"{folder} is not writable", advice)
    return ok("home", home.config if home.config == home.state else f"{home.config}, {home.state}")


def nearest_existing(path: str) -> str:
    """Return a path, or its nearest parent that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def check_disk_space(home: Home) -> Finding:
    folder = nearest_existing(home.state)
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    message = f"{free / 1e9:.1f} GB free in {folder}"
    if free >= _MIN_FREE_BYTES:
        return ok("disk", message)
    return warn("disk", message, "Free some space, or remove sessions (trimtab sessions delete).")


async def check_model(env: Mapping[str, str], home: Home, cwd: str, offline: bool) -> Finding:
    """Check that the model which a session in this folder would use is available."""
    given = SessionOptions(cwd=cwd, offline=offline)
    custom = Customizations(home, env, find_checkout(cwd), given)
    try:
        chosen = await ModelChooser(env, home).choose(resolve(given, env, custom).options)
    except TrimtabError as error:
        return fail("models", "no model is available", error.message)
    try:
        return await check_service(chosen, offline=offline)
    finally:
        await chosen.aclose()


async def check_service(chosen: Chosen, *, offline: bool) -> Finding:
    """Ask a model's service for its list of models, which is free of charge."""
    provider, model = chosen.provider, chosen.model
    if provider.name == LOCAL:
        return ok("models", "the embedded model")
    choice = getattr(provider, "choice", None)
    address = str(getattr(choice, "base_url", "") or f"the service {provider.name}")
    if offline:
        advice = "Run trimtab doctor without --offline to see whether it answers."
        return warn("models", f"{model} at {address}, which was not contacted", advice)
    try:
        names = await provider.list_models() if isinstance(provider, ListsModels) else None
    except ModelError as error:
        return fail("models", f"{model} at {address} is not available", error.message)
    if names is None:
        advice = f"Try it: trimtab -p hello --model {model}"
        message = f"{address} answers, but does not list its models, so {model} is not checked"
        return warn("models", message, advice)
    wanted = getattr(choice, "wire_model", None) or model
    if not any(same_model(wanted, name) for name in names):
        return fail("models", f"{address} has no model {model!r}", did_you_mean(wanted, names))
    return ok("models", f"{model} at {address}, which answers")


def check_embedded(env: Mapping[str, str]) -> Finding:
    if is_usable(env):
        return ok("embedded", f"{find_weights(env)}")
    return ok("embedded", "not installed; `trimtab models pull local` fetches it (1.1 GB)")


def check_fence(env: Mapping[str, str], home: Home) -> Finding:
    """Find out behind which fence commands run that nobody approved."""
    wanted = Settings(home).get("sandbox.fence", str, "auto")
    if wanted == "none":
        message = "it is switched off: only the plainest commands run unasked"
        return warn("fence", message, f"Remove sandbox.fence from {home.settings}.")
    chosen = [name for name in BACKENDS if name == wanted]
    found = detect_fence(env, chosen or BACKENDS)
    if found.backend is not None:
        name = FENCE_NAMES[found.backend]
        return ok("fence", f"commands that nobody approved run behind {name}")
    message = f"none works ({'; '.join(found.reasons)}): only the plainest commands run unasked"
    advice = f"Remove sandbox.fence from {home.settings}." if chosen else "Install bubblewrap."
    return warn("fence", message, advice)


def check_sandbox(env: Mapping[str, str], cwd: str) -> Iterator[Finding]:
    found = detect(env)
    reasons = "; ".join(found.reasons)
    if found.backend == "bubblewrap":
        yield ok("sandbox", f"bubblewrap works ({found.program})")
        yield from check_protected_names(cwd)
    elif found.backend:
        message = f"Landlock works, but restricts less than bubblewrap ({reasons})"
        yield warn("sandbox", message, "Install bubblewrap.")
    else:
        message = f"no backend works here ({reasons})"
        yield warn("sandbox", message, "Install bubblewrap to use --sandbox.")


def check_protected_names(cwd: str) -> Iterator[Finding]:
    """Find protected names in a folder that the sandbox leaves writable."""
    found = find_uncovered(os.path.realpath(cwd))
    if found.paths:
        listed = ", ".join(found.paths[:_MAX_LISTED])
        rest = len(found.paths) - _MAX_LISTED
        more = f" and {rest} more" if rest > 0 else ""
        message = f"it does not protect these names here: {listed}{more}"
        yield warn("sandbox", message, "List them under sandbox.readOnly in the settings.")
    if not found.complete:
        message = f"{cwd} is too large to find all names it does not protect"
        yield warn("sandbox", message, "Work in a smaller folder.")


def check_settings(home: Home) -> Iterator[Finding]:
    settings = Settings(home)
    number = len(settings.values)
    problems = settings.problems
    for problem in problems:
        yield warn("settings", problem.sentence, f"Correct {problem.file or home.settings}.")
    if not problems:
        yield ok("settings", f"{number} in {home.settings}" if number else "none")
    if "sandbox" not in settings.values:
        yield ok("sandbox", "commands run outside it unless --sandbox is given")
    else:
        try:
            enabled = read_settings(settings.values["sandbox"]).enabled
            side = "inside" if enabled else "outside"
            yield ok("sandbox", f"commands run {side} it because of the setting `sandbox`")
        except TrimtabError as error:
            yield fail("sandbox", error.message, f"Correct {home.settings}.")


async def check_folder(env: Mapping[str, str], home: Home, cwd: str) -> list[Finding]:
    """Check the trust, rules, exclusions and hooks of a folder."""
    trusted = env.get("COPILOT_ALLOW_ALL") == "true"
    listed = await list_hooks(env, cwd, trusted=trusted)
    findings = []
    items = len(listed.trust.items)
    if listed.trust.trusted or not items:
        state = "trusted" if listed.trust.trusted else "not trusted, and contains nothing to load"
        findings.append(ok("trust", f"{listed.trust.root} is {state}"))
    else:
        message = f"{listed.trust.root} is not trusted; {count(items, 'item')} not loaded"
        findings.append(warn("trust", message, "Start with --trust-folder to use them."))
    findings += check_rules(home, listed.trust)
    findings += check_exclusions(home, listed.trust)
    active = sum(map(listed.runs, listed.entries))
    files = dict.fromkeys(entry.file for entry in listed.entries)
    findings.append(ok("hooks", f"{active} active, from {', '.join(files)}" if files else "none"))
    return findings + [
        warn("hooks", problem.sentence, "Correct the file.") for problem in listed.found.problems
    ]


def check_exclusions(home: Home, trust: FolderTrust, policy: str = POLICY) -> Iterator[Finding]:
    """List the files with content exclusions that apply to a folder."""
    try:
        exclusions = read_policy(policy)
        if (own := read_exclusion(home)) is not None:
            exclusions[home.settings] = own
        for file, exclusion in exclusions.items():
            patterns = len({rule.argument for rule in to_rules(exclusion, file, (trust.root,))})
            yield ok("excluded", f"{count(patterns, 'pattern')} for paths here, by {file}")
    except TrimtabError as error:
        yield fail("excluded", error.message, "Correct it.")


def check_rules(home: Home, trust: FolderTrust) -> Iterator[Finding]:
    """List the files with rules that apply to a folder; none may have a rule that is invalid."""
    sources = find_rule_sources(home, trust)
    try:
        for file in (home.settings, *sources):
            if file != home.permissions:
                read_rules(home, file)
        yield ok("rules", ", ".join(sources) or "no files; flags and answers only")
    except TrimtabError as error:
        yield fail("rules", error.message, "No session starts before that.")


def find_rule_sources(home: Home, trust: FolderTrust) -> list[str]:
    """Return the files that contain permission rules for a folder."""
    files = [home.settings, home.permissions]
    if trust.trusted:
        files += [os.path.join(trust.root, name) for name in REPOSITORY]
    sources = []
    for file in files:
        try:
            with open(file, "rb") as stream:
                data = stream.read()
        except OSError:
            continue
        if any(key in data for key in (b'"permissions"', b'Urls"', b'"locations"')):
            sources.append(file)
    return sources
