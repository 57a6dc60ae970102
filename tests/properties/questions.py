"""How often a person is asked: commands of whole sessions, and what they cost in questions.

`python questions.py` plays the lists in `tests/unit/permissions/data`. Whoever is asked approves
for always what can be approved so, with the commands that belong together if they are offered; the
first session of a project is not counted, as nothing has been approved before it.

`python questions.py --recorded DIR` plays sessions that real agents had: a file `PROJECT.N.jsonl`
for each, in the order of their names, with a line `{"command", "cwd"}` for each command, and
perhaps a folder `PROJECT` with the manifests of the project. With `--together` they are sessions of
one person, who approves for every project, with `--confined` of one whose commands run in a sandbox
with `autoAllow`. There a command that needs the network, or more of the machine than the sandbox
has, costs a question as well. With `--no-everyday` the person takes commands that belong together,
but not everyday work; with `--narrow` neither.

Commands are judged, not run. As root, the folders that they name are made first, in a copy of the
file system that vanishes; else a folder that this machine does not have is taken for a file.
"""

import ctypes
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from permissionkit import DATA, POLICY, split_sessions
from trimtab.checkout.project_commands import find_checks
from trimtab.checkout.project_hosts import find_hosts
from trimtab.contracts.permission import Decision, Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.bundles import Bundle, find_bundle, find_everyday
from trimtab.permissions.decide_shell import judge_analysis
from trimtab.permissions.paths import resolve
from trimtab.permissions.rules import parse_rules
from trimtab.permissions.sandbox_bypass import (
    find_outside_bundle,
    name_commands,
    runs_outside,
)
from trimtab.permissions.shell.verdict.analysis import Analysis
from trimtab.permissions.work_folders import widen
from trimtab.workspace.sandbox.landlock import check
from trimtab.workspace.sandbox.mounts import MountNamespace

Find = Callable[[str, list[str], Sequence[str], Policy, list[str]], Bundle | None]

WIDEST: Sequence[Find] = (find_bundle, find_everyday)
MOST = 5.0
TEMP = "/tmp"
OWN_FOLDERS = re.compile(r"/\.(claude|codex|cursor|gstack)\b|/tmp/claude")
"""Folders in which other agents keep their own files, and the output of their commands."""
REASONS = (
    ("folders that the recorded agents keep for themselves", OWN_FOLDERS.pattern),
    ("other files outside the workspace", "outside the (allowed|workspace)|may hold secrets"),
    ("what cannot be undone", "cannot be undone"),
    ("protected files", "is protected"),
    ("what is not known before it runs", "not fixed yet|cannot be read|may do more|does more"),
    ("a file that is written", "allows writing"),
    ("a host that is new", "connect to"),
    ("what the sandbox cannot give", "outside the sandbox"),
    ("the first use of a program", "No rule allows"),
)
HOSTS = (
    (r"gh .*", "api.github.com"),
    (r"git (fetch|pull|push|ls-remote|clone)", "the git server"),
    (r"(npm|pnpm|yarn|bun) (i|install|ci|add|uninstall)|npx|bunx", "the package registry"),
    (r"(pip|pip3|uv|poetry|pixi|cargo|go|brew|apt|apt-get)( .*)?", "the package registry"),
)
"""Commands that connect to a host, which is asked about once."""
OWN_HOSTS = {"the git server", "api.github.com"}
"""Hosts that the remote of a project implies: one answer allows them, and its registries."""
HOME = re.compile(r"/(?:home|Users)/[\w.-]+")
PATH = re.compile(r"""(?<![^\s"'=:;|&(<>])((?:cd|find|-C) +)?([~/][\w./@+-]*)""")
"""A path that is written in full, and what makes it a folder."""
BEYOND = re.compile(r"ssh|scp|sudo|docker.*|brew|kill|pkill|railway|psql|claude|systemctl")
"""Programs that need what no sandbox gives them: keys, services, other processes."""


class Line(msgspec.Struct):
    """One command of a recorded session."""

    command: str
    cwd: str = POLICY.cwd


class Project(msgspec.Struct):
    """The sessions of one project, and the commands that check it."""

    sessions: list[list[Line]]
    checks: list[str] = []
    registries: bool = False
    """True if its manifests imply registries of packages."""

    @property
    def home(self) -> str:
        """The home that its commands name most often, or the one that its folder seems to be in."""
        lines = [line for session in self.sessions for line in session]
        named = Counter(home for line in lines for home in HOME.findall(line.command))
        own = [line.cwd for line in lines if HOME.match(line.cwd)]
        if own:
            return "/".join(own[0].split("/")[:3])
        return named.most_common(1)[0][0] if named else POLICY.home


class Person:
    """Somebody who allows for always what can be allowed so."""

    def __init__(self, start: Policy, project: Project, takes: Sequence[Find] = WIDEST) -> None:
        """`takes` are the offers that are taken, the widest last."""
        self.policy = start
        self._takes = takes
        self._checks, self._home = project.checks, project.home
        self._own_hosts = OWN_HOSTS | ({"the package registry"} if project.registries else set())
        self._offered: list[str] = []
        self._hosts: set[str] = set()

    def begin_session(self) -> None:
        """Bundles are offered once in a session."""
        self._offered.clear()

    def is_asked(self, line: Line) -> str:
        """Return the question about a command, empty if there is none; it is then approved."""
        place = (resolve(line.cwd), *POLICY.roots, f"/private{TEMP}")  # as macOS calls it
        given = msgspec.structs.replace(
            self.policy, cwd=line.cwd, roots=place, home=self._home, undone=place[:1], temp=TEMP
        )
        self.policy = widen(given)
        analysis = read_script(line.command, self.policy)
        decision = judge_analysis(analysis, self.policy, line.command)
        access = Access(kind="shell", target=line.command)
        if runs_outside(access, self.policy):
            return ""
        if decision.verdict == "allow" and self.policy.confined and not analysis.read_only:
            decision = self._reach_out(access, analysis) or decision
        if decision.verdict == "allow":
            return ""
        self._approve(access, analysis)
        return f"{line.command}\n    {decision.reason}"

    def _reach_out(self, access: Access, analysis: Analysis) -> Decision | None:
        """Ask about a new host, or about running a command outside the sandbox, from now on."""
        names = [found.identifier for found in analysis.commands if not found.read_only]
        if beyond := next(filter(BEYOND.fullmatch, names), ""):
            return self._let_out(access, analysis, f"{beyond} would run outside the sandbox.")
        hosts = [host for name in names for mark, host in HOSTS if re.fullmatch(mark, name)]
        if any(name in ("curl", "wget") for name in names):
            hosts += [url.split("/")[2] for url in analysis.possible_urls if url.count("/") > 1]
        local = next((host for host in hosts if host.startswith(("localhost", "127."))), "")
        if local:
            reason = f"It would run outside the sandbox, to reach {local}."
            return self._let_out(access, analysis, reason)
        new = set(hosts) - self._hosts
        self._hosts |= new | (self._own_hosts if new & self._own_hosts else set())
        reason = f"It would connect to {', '.join(sorted(new))}."
        return Decision(verdict="ask", reason=reason) if new else None

    def _let_out(self, access: Access, analysis: Analysis, reason: str) -> Decision:
        approval = generalise(access, analysis) or {"kind": ""}
        if approval["kind"] == "commands":
            bundle = find_outside_bundle(access.target, approval, self.policy)
            names = name_commands(bundle) if bundle else approval["commandIdentifiers"]
            approval |= {"outsideSandbox": True, "commandIdentifiers": names}
            rules = to_rules(approval, "always")
            self.policy = msgspec.structs.replace(self.policy, allow=(*self.policy.allow, *rules))
        return Decision(verdict="ask", reason=reason)

    def _approve(self, access: Access, analysis: Analysis) -> None:
        approval = generalise(access, analysis, self.policy)
        rules = to_rules(approval, "always")
        suggested = [str(rule) for rule in rules]
        command, policy = access.target, self.policy
        offers = [
            find(command, suggested, self._checks, policy, self._offered) if rules else None
            for find in self._takes
        ]
        for bundle in filter(None, offers):
            self._offered.append(bundle.title)
            rules = parse_rules(bundle.rules, "always")
        self.policy = msgspec.structs.replace(self.policy, allow=(*self.policy.allow, *rules))


def read_lists() -> Iterator[Project]:
    """The sessions of each project in our own lists."""
    for path in sorted((DATA / "sessions").glob("*.txt")):
        yield Project([[Line(command) for command in part] for part in split_sessions(path)])


def read_recorded(folder: Path, *, together: bool) -> Iterator[Project]:
    """The sessions of each project in a folder of recorded ones, or those of all as of one."""
    decode = msgspec.json.Decoder(Line).decode_lines
    paths = sorted(folder.glob("*.jsonl"))
    for name, files in groupby(
        paths, key=lambda path: path.name.partition(".")[0] * (not together)
    ):
        sessions = [decode(path.read_bytes()) for path in files]
        place = str(folder / name)
        known = (find_checks(place), bool(find_hosts(place))) if name else ([], False)
        project = Project(sessions, *known)
        if os.geteuid() == 0:
            lay_out(project, folder / name)
        yield project


def enter_copy() -> None:
    """Continue in a copy of the file system that vanishes with this process."""
    namespace = MountNamespace()
    top = tempfile.mkdtemp()
    namespace.mount_empty(top, "mode=0755")
    root, upper, work = (os.path.join(top, name) for name in ("root", "upper", "work"))
    for folder in (root, upper, work):
        os.mkdir(folder)
    layers = f"lowerdir=/,upperdir={upper},workdir={work}".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.mount(b"overlay", os.fsencode(root), b"overlay", 0, layers))
    for folder in ("/proc", "/dev"):
        namespace.bind(folder, root + folder)
    cwd = os.getcwd()
    os.chroot(root)
    os.chdir(cwd)


def lay_out(project: Project, manifests: Path) -> None:
    """Make the folders of a project: its own, and those in which the commands name something."""
    for line in (line for session in project.sessions for line in session):
        if not os.path.isdir(line.cwd) and manifests.is_dir():
            shutil.copytree(manifests, line.cwd)
        os.makedirs(os.path.join(line.cwd, ".git"), exist_ok=True)
        Path(line.cwd, ".git", "config").touch()
        home = project.home
        for before, place in PATH.findall(line.command.replace("$HOME", "~")):
            path = os.path.normpath(place.replace("~", home, 1))
            folder = path if before or place.endswith("/") else os.path.dirname(path)
            if folder.startswith((home, TEMP)):
                os.makedirs(folder, exist_ok=True)


def measure(
    projects: Iterator[Project], start: Policy = POLICY, takes: Sequence[Find] = WIDEST
) -> tuple[list[str], int]:
    """The commands asked about in later sessions, and how many commands those had."""
    asked: list[str] = []
    count = 0
    for project in projects:
        person = Person(start, project, takes)
        for number, session in enumerate(project.sessions):
            person.begin_session()
            questions = [person.is_asked(line) for line in session]
            if number:
                asked += filter(None, questions)
                count += len(session)
    return asked, count


def sort_by_reason(asked: list[str]) -> Counter[str]:
    """Count the questions of each kind; the first kind that fits counts."""
    kinds: Counter[str] = Counter()
    for question in asked:
        fits = (kind for kind, mark in REASONS if re.search(mark, find_text(kind, question)))
        kinds[next(fits, "something else")] += 1
    return kinds


def find_text(kind: str, question: str) -> str:
    """Return what tells a kind: the command for agents' own folders, the reason for the others."""
    return question if kind == REASONS[0][0] else question.rpartition("\n")[2]


def main(arguments: list[str]) -> int:
    projects = read_lists()
    if arguments[:1] == ["--recorded"]:
        if os.geteuid() == 0:
            enter_copy()
        projects = read_recorded(Path(arguments[1]), together="--together" in arguments)
    confined = "--confined" in arguments
    start = msgspec.structs.replace(POLICY, confined=confined)
    takes = WIDEST
    if "--narrow" in arguments:
        takes = ()
    elif "--no-everyday" in arguments:
        takes = (find_bundle,)
    asked, count = measure(projects, start, takes)
    print("\n".join(asked))
    for kind, number in sort_by_reason(asked).most_common():
        print(f"{number:4} {kind}")
    rate = 100 * len(asked) / count
    print(f"{rate:.1f} per 100 of {count} commands")
    return 0 if rate <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
