"""Looks over an installation: what works, what does not, and what to do.

Contacts the model service that a session would use, and nothing else.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from trimtab.config.paths import POLICY, Home, find_home
from trimtab.contracts.errors import ModelError, TrimtabError
from trimtab.contracts.text import count

if TYPE_CHECKING:
    from trimtab.models.choose import Chosen
    from trimtab.policy.folder_trust import FolderTrust

NAMED = 5
"""Paths of a kind that are named."""
ENOUGH = 200 * 1024 * 1024
"""Bytes that should be free where sessions are kept."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report; `advice` says what to do about what is not ok."""

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


async def examine(env: Mapping[str, str], cwd: str, *, offline: bool = False) -> list[Finding]:
    """Everything there is to say about this machine, this home and this folder."""
    findings = [*look_at_program(), look_at_search(env), look_at_git(env)]
    try:
        home = find_home(env)
    except TrimtabError as error:
        return [
            *findings,
            fail("home", error.message, "Correct that and run trimtab doctor again."),
        ]
    findings += [look_at_home(home), look_at_space(home)]
    findings += [await look_at_models(env, home, cwd, offline), look_at_embedded(env)]
    findings += [*look_at_sandbox(env, cwd), *look_at_settings(home)]
    return findings + await look_at_folder(env, home, cwd)


def look_at_program() -> Iterator[Finding]:
    from trimtab.version import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", f"{version} ({sys.executable})")
    yield ok("install", f"trimtab {__version__} ({os.path.dirname(os.path.dirname(__file__))})")


def look_at_search(env: Mapping[str, str]) -> Finding:
    from trimtab.workspace.search import find_ripgrep

    try:
        return ok("search", find_ripgrep(env))
    except TrimtabError as error:
        return fail("search", error.message, "Install ripgrep.")


def look_at_git(env: Mapping[str, str]) -> Finding:
    import shutil

    found = shutil.which("git", path=env.get("PATH"))
    if found:
        return ok("git", found)
    return warn("git", "not found on PATH", "Install git to use worktrees and to see changes.")


def look_at_home(home: Home) -> Finding:
    for folder in dict.fromkeys((home.config, home.state)):
        place = folder
        while not os.path.exists(place):
            place = os.path.dirname(place)
        if not os.access(place, os.W_OK | os.X_OK):
            advice = "Make it writable, or set COPILOT_HOME to a folder that is."
            return fail("home", f"{folder} cannot be written", advice)
    return ok("home", home.config if home.config == home.state else f"{home.config}, {home.state}")


def look_at_space(home: Home) -> Finding:
    place = home.state
    while not os.path.exists(place):
        place = os.path.dirname(place)
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    message = f"{free / 1e9:.1f} GB free in {place}"
    if free >= ENOUGH:
        return ok("disk", message)
    return warn("disk", message, "Free some space, or remove sessions (trimtab sessions delete).")


async def look_at_models(env: Mapping[str, str], home: Home, cwd: str, offline: bool) -> Finding:
    """Tell whether the model that a session here would use can answer."""
    from trimtab.checkout.checkout import find_checkout
    from trimtab.contracts.options import SessionOptions
    from trimtab.customize.customizations import Customizations
    from trimtab.models.choose import ModelChooser
    from trimtab.runtime.options import resolve

    given = SessionOptions(cwd=cwd, offline=offline)
    custom = Customizations(home, env, find_checkout(cwd), given)
    try:
        chosen = await ModelChooser(env, home).choose(resolve(given, env, custom).options)
    except TrimtabError as error:
        return fail("models", "nothing can answer", error.message)
    try:
        return await ask_service(chosen, offline=offline)
    finally:
        await chosen.aclose()


async def ask_service(chosen: "Chosen", *, offline: bool) -> Finding:
    """Ask the service of a model what it has, which costs nothing."""
    from trimtab.contracts.provider import ListsModels
    from trimtab.models.choose import LOCAL
    from trimtab.providers.names import did_you_mean, same_model

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
        return fail("models", f"{model} at {address} cannot answer", error.message)
    if names is None:
        advice = f"Try it: trimtab -p hello --model {model}"
        message = f"{address} answers, but does not list its models, so {model} is not checked"
        return warn("models", message, advice)
    wanted = getattr(choice, "wire_model", None) or model
    if not any(same_model(wanted, name) for name in names):
        return fail("models", f"{address} has no model {model!r}", did_you_mean(wanted, names))
    return ok("models", f"{model} at {address}, which answers")


def look_at_embedded(env: Mapping[str, str]) -> Finding:
    from trimtab.providers.embedded.weights import find_weights, is_usable

    if is_usable(env):
        return ok("embedded", f"{find_weights(env)}")
    return ok("embedded", "not installed; `trimtab models pull local` fetches it (1.1 GB)")


def look_at_sandbox(env: Mapping[str, str], cwd: str) -> Iterator[Finding]:
    from trimtab.workspace.sandbox.detection import detect

    found = detect(env)
    why = "; ".join(found.reasons)
    if found.backend == "bubblewrap":
        yield ok("sandbox", f"bubblewrap works ({found.program})")
        yield from look_below(cwd)
    elif found.backend:
        message = f"Landlock works, which holds less back ({why})"
        yield warn("sandbox", message, "Install bubblewrap.")
    else:
        yield warn("sandbox", f"none works here ({why})", "Install bubblewrap to use --sandbox.")


def look_below(cwd: str) -> Iterator[Finding]:
    """Which protected names in this folder the sandbox would leave open to commands."""
    from trimtab.policy.unprotected import find_uncovered

    found = find_uncovered(os.path.realpath(cwd))
    if found.paths:
        shown = ", ".join(found.paths[:NAMED])
        more = f" and {len(found.paths) - NAMED} more" if len(found.paths) > NAMED else ""
        message = f"it does not hold these protected names here: {shown}{more}"
        yield warn("sandbox", message, "List them under sandbox.readOnly in the settings.")
    if not found.complete:
        message = f"{cwd} is too large to see which protected names it does not hold"
        yield warn("sandbox", message, "Work in a smaller folder.")


def look_at_settings(home: Home) -> Iterator[Finding]:
    from trimtab.agents.sandbox import read_settings
    from trimtab.config.settings import Settings

    settings = Settings(home)
    count = len(settings.values)
    problems = settings.problems
    for problem in problems:
        yield warn("settings", problem.sentence, f"Correct {problem.file or home.settings}.")
    if not problems:
        yield ok("settings", f"{count} in {home.settings}" if count else "none")
    if "sandbox" not in settings.values:
        yield ok("sandbox", "commands run outside it unless --sandbox is given")
    else:
        try:
            on = read_settings(settings.values["sandbox"]).enabled
            yield ok("sandbox", f"commands run {'inside' if on else 'outside'} it by the setting")
        except TrimtabError as error:
            yield fail("sandbox", error.message, f"Correct {home.settings}.")


async def look_at_folder(env: Mapping[str, str], home: Home, cwd: str) -> list[Finding]:
    """What this folder would add: trust, rules, hooks."""
    from trimtab.hooks.dry_run import list_hooks

    trusted = env.get("COPILOT_ALLOW_ALL") == "true"
    listed = await list_hooks(env, cwd, trusted=trusted)
    findings = []
    items = len(listed.trust.items)
    if listed.trust.trusted or not items:
        state = "trusted" if listed.trust.trusted else "not trusted, and has nothing to load"
        findings.append(ok("trust", f"{listed.trust.root} is {state}"))
    else:
        message = f"{listed.trust.root} is not trusted; {count(items, 'item')} of it left out"
        findings.append(warn("trust", message, "Start with --trust-folder to use them."))
    sources = find_rule_sources(home, listed.trust)
    findings.append(ok("rules", ", ".join(sources) or "no files; flags and answers only"))
    findings += look_at_exclusions(home, listed.trust)
    running = sum(map(listed.runs, listed.entries))
    files = dict.fromkeys(entry.file for entry in listed.entries)
    findings.append(ok("hooks", f"{running} run, of {', '.join(files)}" if files else "none"))
    problems = [problem.sentence for problem in listed.found.problems]
    return findings + [warn("hooks", said, "Correct the file.") for said in problems]


def look_at_exclusions(home: Home, trust: "FolderTrust", policy: str = POLICY) -> Iterator[Finding]:
    """What is kept from the agent here, and who says so."""
    from trimtab.policy.exclusions import read_policy, to_rules
    from trimtab.policy.rule_files import read_exclusion

    try:
        given = read_policy(policy)
        if (mine := read_exclusion(home)) is not None:
            given[home.settings] = mine
        for file, one in given.items():
            patterns = len({rule.argument for rule in to_rules(one, file, (trust.root,))})
            yield ok("excluded", f"{count(patterns, 'pattern')} for paths here, by {file}")
    except TrimtabError as error:
        yield fail("excluded", error.message, "Correct that.")


def find_rule_sources(home: Home, trust: "FolderTrust") -> list[str]:
    """The files that give rules to a session here."""
    from trimtab.policy.rule_files import REPOSITORY

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
        if any(word in data for word in (b'"permissions"', b'Urls"', b'"locations"')):
            sources.append(file)
    return sources
