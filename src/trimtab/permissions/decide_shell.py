"""The decision about a shell command."""

import os
from collections.abc import Iterable, Iterator, Sequence

from trimtab.contracts.permission import Decision, Policy, Rule
from trimtab.permissions.agent_folders import is_guarded
from trimtab.permissions.assess import read_script
from trimtab.permissions.denied_files import denies_some_reads, search
from trimtab.permissions.fetches import find_fetch_rules
from trimtab.permissions.file_commands import COMMANDS, changes_named_files
from trimtab.permissions.paths import (
    is_in_home,
    is_inside,
    is_own_file,
    is_pipe,
    refuse_special,
)
from trimtab.permissions.patterns import MAX_FILES, find_files, matches_hidden
from trimtab.permissions.places_elsewhere import TERMINALS, find_outside, find_places_elsewhere
from trimtab.permissions.plain import find_plain_programs
from trimtab.permissions.reach import find_rule
from trimtab.permissions.read_folders import find_granted
from trimtab.permissions.recoverable import REGENERATED
from trimtab.permissions.rules import (
    covers,
    find_spots,
    matches_address,
    matches_command,
    matches_path,
    may_run,
    name_rule,
)
from trimtab.permissions.shell.grammar.words import UNKNOWN
from trimtab.permissions.shell.programs.launchers import find_named
from trimtab.permissions.shell.programs.network import ADDRESSED, find_hosts, find_labelled
from trimtab.permissions.shell.verdict.analysis import Analysis, Found
from trimtab.permissions.shell.verdict.inline_code import (
    find_renamed,
    runs_inline_code,
    starts_inline_code,
)
from trimtab.permissions.shell.verdict.repositories import find_starting
from trimtab.permissions.tracked_files import (
    find_recorded,
    find_root,
    is_tracked,
    prints_recorded,
)
from trimtab.permissions.unnamed_writes import ask_about_unnamed
from trimtab.permissions.urls import find_label, may_match
from trimtab.permissions.work_folders import offer_work_folders

_LOCAL = frozenset((*COMMANDS, "sed", "gsed", "awk", "gawk", "ln", "tee", "echo", "printf"))
"""Programs that never connect to anything."""
_RECORDED = frozenset(
    f"git {name}"
    for name in (
        *("add", "am", "annotate", "bisect", "blame", "branch", "checkout", "cherry-pick", "clean"),
        *("commit", "diff", "fetch", "grep", "log", "ls-files", "merge", "mergetool", "notes"),
        *("pull", "push", "rebase", "reset", "restore", "revert", "rm", "show", "stage", "stash"),
        *("status", "switch", "tag", "update-index"),
    )
)
"""The commands of git that change the files they name only to what git has recorded."""


def decide_shell(text: str, policy: Policy, shell: str = "bash") -> Decision:
    """Decide about a shell command."""
    return judge_analysis(read_script(text, policy, shell), policy, text)


def judge_analysis(analysis: Analysis, policy: Policy, text: str = "") -> Decision:
    """The steps in order; the first that has something to say decides."""
    steps = (
        *(_deny, _refuse, _ask_by_rule, _ask_if_hidden),
        *(_ask_about_hosts, _ask_about_ruin, _ask_about_tracked, ask_about_unnamed),
    )
    for step in steps:
        if decision := step(analysis, policy):
            return decision
    if policy.allow_all_tools or policy.confined:
        reason = "It runs in the sandbox, where commands need no permission."
        reason = "All tools are allowed." if policy.allow_all_tools else reason
        decision = _judge_paths(analysis, policy) or _judge_granted(analysis, policy, text)
        return decision or Decision(verdict="allow", reason=reason)
    return _ask_by_nature(analysis) or _judge_commands(analysis, policy, text)


def _deny(analysis: Analysis, policy: Policy) -> Decision | None:
    places = _Places(analysis, policy.cwd)
    for rule in policy.deny:
        if matches := _find_match(rule, analysis, places):
            reason = f"{name_rule(rule)} forbids {matches}."
            return Decision(verdict="deny", reason=reason, rule=rule)
    return None


class _Places:
    """The paths of a command, each looked up once for all rules."""

    def __init__(self, analysis: Analysis, cwd: str) -> None:
        self.cwd = cwd
        targets = [path for path in analysis.targets if path is not None]
        self._written = (*targets, *analysis.touched, *analysis.deleted)
        read = (*analysis.reads, *analysis.scripts, *find_recorded(analysis, cwd))
        self._read = (*read, *self._written)
        self._hidden = matches_hidden(analysis)
        self._spots: dict[str, list[frozenset[str]]] = {}

    def find(self, rule: Rule) -> str | None:
        """Return what a rule for paths covers, as words for a reason."""
        if rule.kind == "write":
            written = (path for path in self._written if self._covers(rule, path))
            return next((f"writing {path}" for path in written), None)
        if rule.kind == "read":
            read = (path for path in self._read if self._covers(rule, path))
            return next((f"reading {path}" for path in read), None)
        return None

    def _covers(self, rule: Rule, path: str) -> bool:
        if path not in self._spots:
            there = find_files(path, hidden=self._hidden)
            self._spots[path] = [find_spots(file, self.cwd, denies=True) for file in there]
        return any(covers(rule, spot, self.cwd, True) for spot in self._spots[path])


def _find_match(rule: Rule, analysis: Analysis, places: _Places) -> str | None:
    """Return what a rule that denies or asks covers in a command."""
    for found in (*analysis.commands, *analysis.carried):
        runs = may_run(rule, found.places, places.cwd)
        if runs or matches_command(rule, found, denies=True):
            return found.identifier
    scripts = (path for path in analysis.scripts if may_run(rule, (path,), places.cwd))
    if script := next(scripts, ""):
        return f"running {script}"
    if address := _find_address(rule, analysis):
        return address
    if rule.argument is None:
        if rule.kind == "write" and analysis.targets:
            return "writing files"
    elif path := places.find(rule):
        return path
    # Also what cannot be known before it runs is a command.
    return "all commands" if rule.argument is None and rule.kind in ("shell", "bash") else None


def _find_address(rule: Rule, analysis: Analysis) -> str:
    """Return an address that a rule covers, or an empty text."""
    if rule.kind != "url":
        return ""
    urls = list(analysis.possible_urls)
    label = find_label(rule.argument or "")
    for found in analysis.commands if label else ():
        if found.base.partition(" ")[0] in ADDRESSED:
            urls += find_labelled(found.words[1:], label)
    return next((url for url in urls if matches_address(rule, url, denies=True)), "")


def _refuse(analysis: Analysis, policy: Policy) -> Decision | None:
    """Places where nothing is written, whatever is allowed."""
    for path in analysis.targets:
        if path is None or path in TERMINALS:
            continue
        if is_in_home(path, policy.homes, policy.session_folder):
            reason = f"{path} is the agent's own; commands never write there."
            return Decision(verdict="deny", reason=reason)
        if refusal := refuse_special(path):
            return Decision(verdict="deny", reason=f"{refusal}; it is not written.")
    return None


def _ask_by_rule(analysis: Analysis, policy: Policy) -> Decision | None:
    places = _Places(analysis, policy.cwd)
    for rule in policy.ask:
        if matches := _find_match(rule, analysis, places):
            reason = f"The rule {rule} wants {matches} to be asked about."
            return Decision(verdict="ask", reason=reason, rule=rule)
    return None


def _ask_if_hidden(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask if rules deny some commands and we cannot list everything the script may run."""
    rules = [rule for rule in policy.deny if rule.kind in ("shell", "bash")]
    if not rules:
        return None
    if not analysis.is_known:
        reasons = (*analysis.dynamic, analysis.conceals, *analysis.doubts, analysis.problem)
        reason = next(filter(None, reasons), "")
        return Decision(
            verdict="ask",
            reason=f"A rule forbids some commands, and it is not certain which ones run: {reason}.",
        )
    if program := find_renamed(analysis.commands, rules):
        reason = f"A rule forbids {program}, which is given another name."
        return Decision(verdict="ask", reason=reason)
    specific = any(rule.argument for rule in rules)
    for found in analysis.commands:
        inline = specific and not policy.confined
        if inline and (runs_inline_code(found) or starts_inline_code(found)):
            reason = f"A rule forbids some commands, and {found.base} runs code that is not read."
            return Decision(verdict="ask", reason=reason)
        for name in find_named(found.words or (found.base,)):
            named = Found(identifier=name.identifier, read_only=False, base=name.base)
            if any(matches_command(rule, named, denies=True) for rule in rules):
                reason = f"A rule forbids {name.base}, which {found.base} may start."
                return Decision(verdict="ask", reason=reason)
    return None


def _ask_about_hosts(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask if rules deny some addresses, and it is not known that a command connects elsewhere.

    The sandbox holds commands that it confines to the same rules.
    """
    given = (*policy.deny, *policy.ask)
    rules = [] if policy.confined else [rule for rule in given if rule.kind == "url"]
    for rule in rules:
        for text in analysis.open_urls:
            known = text.partition(UNKNOWN)[0]
            if rule.argument is None or may_match(rule.argument, known):
                shown = text.replace(UNKNOWN, "…")
                reason = f"{name_rule(rule)} may forbid {shown}, which is not known before it runs."
                return Decision(verdict="ask", reason=reason)
        for found in analysis.commands:
            program = found.base.partition(" ")[0]
            read = found.read_only or program in _LOCAL or program in ADDRESSED
            named = [] if read else list(find_hosts(found.words[1:]))
            if label := "" if read else find_label(rule.argument or ""):
                named += find_labelled(found.words[1:], label)
            if host := next((h for h in named if matches_address(rule, h, denies=True)), ""):
                reason = f"{name_rule(rule)} forbids {host}, to which {found.base} may connect."
                return Decision(verdict="ask", reason=reason)
    return None


def _ask_about_ruin(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask about what cannot be undone, even if everything is allowed."""
    for path in analysis.given:
        if is_in_home(path, policy.homes, policy.session_folder):
            return Decision(verdict="ask", reason=f"{path} is the agent's own.")
    if policy.allow_destructive:
        return None
    if analysis.destructive:
        return Decision(verdict="ask", reason=f"It cannot be undone: {analysis.destructive[0]}.")
    if analysis.unsure and not all(find_rule(found, policy) for found in _find_deleters(analysis)):
        reason = "It cannot be undone: what it deletes is not known before it runs."
        return Decision(verdict="ask", reason=reason)
    for path in analysis.deleted:
        # Deleting a link deletes the link itself, so its folder decides, but not for `..`.
        name = os.path.basename(path.rstrip("/"))
        place = path if name in ("", ".", "..") else os.path.dirname(path.rstrip("/"))
        if not is_inside(place, policy.roots):
            return Decision(verdict="ask", reason=f"It would delete {path}, outside the workspace.")
    return None


def _ask_about_tracked(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask if git may print a file that a rule forbids to read, out of its own records."""
    rules = [rule for rule in policy.deny if denies_some_reads(rule)]
    if not rules or not prints_recorded(analysis, policy.cwd):
        return None
    denied = search(policy.cwd, rules, policy.cwd)
    if path := next(filter(is_tracked, denied.found), ""):
        reason = f"Git may print {path}, which a rule forbids to read."
        return Decision(verdict="ask", reason=reason)
    if not denied.complete:
        reason = f"{policy.cwd} is too large to be sure that git prints no file a rule forbids."
        return Decision(verdict="ask", reason=reason)
    return None


def _ask_by_nature(analysis: Analysis) -> Decision | None:
    """Ask about commands that no rule can approve."""
    if analysis.problem:
        return Decision(
            verdict="ask", reason=f"It cannot be read with certainty: {analysis.problem}."
        )
    if analysis.dynamic:
        return Decision(verdict="ask", reason=f"It is not fixed yet: {analysis.dynamic[0]}.")
    if analysis.hazards:
        return Decision(verdict="ask", reason=f"It does more than it seems: {analysis.hazards[0]}.")
    if analysis.doubts and not analysis.seems_read_only:
        # The line as a whole runs outside the fence.
        return Decision(
            verdict="ask", reason=f"It may do more than it seems: {analysis.doubts[0]}."
        )
    return None


def _judge_commands(analysis: Analysis, policy: Policy, text: str) -> Decision:
    required = [found for found in analysis.commands if not found.shadow]
    rules = [find_rule(found, policy) for found in required]
    if not analysis.proxied:
        given = zip(rules, required, strict=True)
        rules = [rule or _find_url_rule(found, policy) for rule, found in given]
    # What may do more than it seems runs behind the fence, with all the others, or needs a rule.
    fenced = analysis.seems_read_only
    missing = [
        found.identifier
        for found, rule in zip(required, rules, strict=True)
        if rule is None and not (found.read_only or (found.doubtful and fenced))
    ]
    if missing and (rule := _find_write_rule(missing, analysis, policy)):
        rules, missing = [*rules, rule], []
    if missing:
        return _explain_protection(missing, analysis, policy) or _ask_for_rules(
            missing, analysis, policy
        )
    used = [rule for rule in rules if rule is not None]
    decision = _judge_targets(analysis, policy) or _judge_reads(analysis, policy)
    if decision is None and used and not analysis.seems_read_only:
        decision = _ask_if_straying(analysis, policy) or _ask_about_repositories(analysis, policy)
    decision = decision or _ask_about_places(analysis, policy)
    if decision is None and any(rule.argument is None for rule in used):
        # A rule for all commands reaches no further than --allow-all-tools.
        decision = _judge_paths(analysis, policy)
    if decision is not None:
        return decision
    starts_programs = policy.git_programs and any(f.base.startswith("git ") for f in required)
    held = _judge_granted(analysis, policy, text)
    if held is not None and not (starts_programs and held.harmless):
        return held
    harmless = analysis.seems_read_only and not starts_programs
    # What is only worth trying behind the fence needs a rule of its own to run without one.
    given = zip(rules, required, strict=False)
    vouched = all(rule is not None or found.read_only for rule, found in given) or not fenced
    # Only the fence keeps a command inside that may stray, so no rule lets it run without one.
    if used and vouched and not analysis.doubts and not _find_stray(analysis, policy):
        named = ", ".join(dict.fromkeys(map(str, used)))
        reason = f"Allowed by {named}."
        return Decision(verdict="allow", reason=reason, rule=used[0], harmless=harmless)
    if starts_programs:
        reason = f"The setting {policy.git_programs} of this repository makes git start a program."
        return Decision(verdict="ask", reason=reason)
    unsure = analysis.doubts or any(found.doubtful for found in required)
    seems = "seems to only read" if unsure else "only reads"
    return Decision(
        verdict="allow",
        reason=f"It {seems}, inside the workspace.",
        harmless=True,
        plain=find_plain_programs(text, analysis),
    )


def _ask_about_repositories(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask if git, looking for changes, would start what another repository below tells it to."""
    if not any(f.base.startswith("git ") and not f.read_only for f in analysis.commands):
        return None
    words = [word for found in analysis.commands for word in found.words]
    generated = any(part in REGENERATED for word in words for part in word.split(os.sep))
    paths = map(os.path.realpath, (policy.cwd, *analysis.reads, *analysis.touched))
    found = dict.fromkeys(filter(None, map(find_root, paths)))
    for top in (one for one in found if not any(one.startswith(f"{o}/") for o in found)):
        below = find_starting(top, () if generated else REGENERATED)
        if below:
            reason = f"The settings of {below} make git start programs."
            return Decision(verdict="ask", reason=reason)
        if below is None:
            reason = f"{top} is too large to be searched for repositories that start programs."
            return Decision(verdict="ask", reason=reason)
    return None


def _find_write_rule(missing: Sequence[str], analysis: Analysis, policy: Policy) -> Rule | None:
    """Return the rule for writing that covers commands which only change files by name."""
    covering = None
    if not changes_named_files(missing, analysis, policy):
        return None
    for path in analysis.touched:
        rules = (r for r in policy.allow if matches_path(r, "write", path, policy.cwd))
        covering = next(rules, None)
        if covering is None:
            return None
    return covering


def _ask_for_rules(missing: Sequence[str], analysis: Analysis, policy: Policy) -> Decision:
    reason = f"No rule allows {', '.join(dict.fromkeys(missing))}"
    if place := next(_find_places_without_rule(analysis, policy), ""):
        reason += f", and {place} is outside the allowed directories"
    return Decision(verdict="ask", reason=f"{reason}.")


def _explain_protection(
    missing: Sequence[str], analysis: Analysis, policy: Policy
) -> Decision | None:
    """Name the protected file that keeps a rule for writing from covering the commands."""
    if not COMMANDS.issuperset(missing) or not any(r.kind == "write" for r in policy.allow):
        return None
    return _ask_if_protected(analysis.touched, policy)


def _ask_about_protected(path: str) -> Decision:
    return Decision(verdict="ask", reason=f"{path} is protected: it can make things run.")


def _find_deleters(analysis: Analysis) -> list[Found]:
    return [found for found in analysis.commands if found.base in ("rm", "unlink", "shred")]


def _find_url_rule(found: Found, policy: Policy) -> Rule | None:
    return next(iter(find_fetch_rules(found, policy.allow)), None)


def _judge_targets(analysis: Analysis, policy: Policy) -> Decision | None:
    """Files written by redirection need a permission of their own."""
    for path in analysis.targets:
        if path is None:
            return Decision(verdict="ask", reason="It writes a file whose name is not known yet.")
        if is_own_file(path, policy.session_folder):
            continue
        if decision := _judge_target(path, policy):
            return decision
    if not policy.allow_all_paths and not _belongs_to_git(analysis):
        return _ask_if_protected(_expand(analysis, analysis.touched), policy)
    return None


def _expand(analysis: Analysis, paths: Iterable[str]) -> Iterator[str]:
    """Yield paths, and the files there are for patterns among them."""
    hidden = matches_hidden(analysis)
    for path in paths:
        yield from find_files(path, hidden=hidden)


def _ask_if_protected(paths: Iterable[str], policy: Policy) -> Decision | None:
    path = next((path for path in paths if is_guarded(path, policy)), "")
    return _ask_about_protected(path) if path else None


def _judge_target(path: str, policy: Policy) -> Decision | None:
    if is_guarded(path, policy) and not policy.allow_all_paths:
        return _ask_about_protected(path)
    covering = [r for r in policy.allow if matches_path(r, "write", path, policy.cwd)]
    if not covering:
        return Decision(verdict="ask", reason=f"No rule allows writing {path}.")
    named = any(rule.argument and rule.argument[:1] in ("/", "~") for rule in covering)
    if not (named or policy.allow_all_paths or is_inside(path, policy.roots)):
        return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")
    return None


def _belongs_to_git(analysis: Analysis) -> bool:
    """Return True if only git changes something: files that it has recorded, and its own."""
    if analysis.hazards:  # `--output`, settings by which it starts programs
        return False
    return all(found.base in _RECORDED or found.read_only for found in analysis.commands)


def _judge_reads(analysis: Analysis, policy: Policy) -> Decision | None:
    if path := next(filter(is_pipe, _expand(analysis, analysis.reads)), ""):
        reason = f"{path} is a FIFO: what is read from it is gone for other programs."
        return Decision(verdict="ask", reason=reason)
    if policy.allow_all_paths:
        return None
    path = next(find_outside(analysis, analysis.reads, policy), "")
    if path:
        return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")
    return None


def _find_stray(analysis: Analysis, policy: Policy) -> str:
    """Return why a command may read files that were not judged, or an empty text."""
    if policy.allow_all_paths or analysis.strays:
        return "" if policy.allow_all_paths else analysis.strays
    hidden = matches_hidden(analysis)
    patterns = (path for path in analysis.reads if len(find_files(path, hidden=hidden)) > MAX_FILES)
    return next((f"{path} matches too many files" for path in patterns), "")


def _ask_if_straying(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask about a command that runs outside the fence, and may read anything."""
    if reason := _find_stray(analysis, policy):
        reason = f"It may read outside the allowed directories: {reason}."
        return Decision(verdict="ask", reason=reason)
    return None


def _ask_about_places(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask before files elsewhere are changed or copied: a rule for a program does not mean them."""
    path = next(_find_places_without_rule(analysis, policy), "")
    if path:
        return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")
    return None


def _find_places_without_rule(analysis: Analysis, policy: Policy) -> Iterator[str]:
    for path, copied in find_places_elsewhere(analysis, policy):
        if not (copied and find_granted((path,), policy)):
            yield path


def _judge_granted(analysis: Analysis, policy: Policy, text: str) -> Decision | None:
    """Decide about a command that reads elsewhere by a rule; None if it reads nothing so.

    Only the fence keeps it from the secrets there, so no other rule lets it run without one.
    """
    named = (*analysis.reads, *(analysis.given if policy.confined else ()))
    granted = () if policy.allow_all_paths else find_granted(named, policy)
    if not granted:
        return None
    if analysis.seems_read_only:
        return Decision(
            verdict="allow",
            reason=f"It only reads, below {granted[0]}, where a rule allows that.",
            harmless=True,
            plain=find_plain_programs(text, analysis),
        )
    for path in named:
        whole = path.endswith(os.sep) or os.path.isdir(path)
        if whole and find_granted((path,), policy):
            reason = f"{path} may hold secrets, which only the fence keeps from a command."
            if not (policy.confined or offer_work_folders(analysis, policy)):
                reason += " To work there, add it: /add-dir or --add-dir."
            return Decision(verdict="ask", reason=reason)
    return None


def _judge_paths(analysis: Analysis, policy: Policy) -> Decision | None:
    """With all tools but not all paths allowed, paths are still checked."""
    if policy.allow_all_paths:
        return None
    # The sandbox lets nothing outside be changed, so what may be read may be named.
    readable = find_granted(analysis.given, policy) if policy.confined else ()
    places = [(path, policy.roots) for path in analysis.targets if path is not None]
    touched = list(_expand(analysis, analysis.touched))
    places += [(path, (*policy.roots, *readable)) for path in (*touched, *analysis.scripts)]
    for path, roots in places:
        if not is_inside(path, roots):
            return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")
    if decision := _judge_reads(analysis, policy):
        return decision
    changed = () if _belongs_to_git(analysis) else touched
    named = (path for path in (*analysis.targets, *changed) if path is not None)
    return _ask_if_protected(named, policy)
