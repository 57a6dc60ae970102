"""The fence of a session: detects what this machine can do, and follows the session's policy."""

import os
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.permission import Policy

if TYPE_CHECKING:
    from trimtab.agents.setup import SessionSetup
    from trimtab.contracts.options import SandboxSettings
    from trimtab.workspace.sandbox.fence_detection import FoundFence

SURVEY_SECONDS = 2.0
"""Seconds to search the workspace for files that rules keep from being read."""
OTHER_SECONDS, OTHER_ENTRIES = 0.05, 5_000
"""The same for each other folder, such as the temp folder, which is not readable past that."""


class HiddenFiles(msgspec.Struct, frozen=True):
    """The files that rules keep from being read, and the folders that were searched for them."""

    denied: tuple[str, ...]
    roots: tuple[str, ...]


def find_hidden(policy: Policy) -> HiddenFiles | str:
    """Search the roots of a policy; return why the workspace cannot be searched as a whole."""
    rules = [rule for rule in policy.deny if rule.kind == "read"]
    if not rules:
        return HiddenFiles((), policy.roots)
    if any(rule.argument is None for rule in rules):
        return "a rule forbids to read anything"
    from trimtab.permissions.held import survey

    workspace = survey(policy.cwd, rules, policy.cwd, seconds=SURVEY_SECONDS)
    if not workspace.complete:
        return f"{policy.cwd} is too large to find all files that rules keep from being read"
    denied, roots = list(workspace.found), [os.path.realpath(policy.cwd)]
    for root in policy.roots:
        if root == roots[0] or f"{root}/".startswith(f"{roots[0]}/"):
            continue
        found = survey(root, rules, policy.cwd, most=OTHER_ENTRIES, seconds=OTHER_SECONDS)
        if found.complete:
            denied += found.found
            roots.append(root)
    return HiddenFiles(tuple(denied), tuple(roots))


class SessionFence:
    """Confines the commands that nobody approved. Imports nothing before the first of them."""

    def __init__(self, setup: "SessionSetup", settings: "SandboxSettings | None") -> None:
        self._workspace = setup.workspace
        self._folder = setup.folder.path
        self._session = setup.session
        self._wanted = settings.fence if settings else "auto"
        self._found: FoundFence | None = None
        self._known: tuple[Policy, HiddenFiles] | None = None

    @property
    def name(self) -> str:
        """The backend in use, as people are told."""
        backend = self._detect().backend
        if backend is None:
            return "none"
        from trimtab.workspace.sandbox.fence_detection import FENCE_NAMES

        return FENCE_NAMES[backend]

    def find_problem(self) -> str:
        """Return why no fence works on this machine, or an empty text."""
        found = self._detect()
        return "" if found.backend else ", ".join(found.reasons)

    def prepare(self, policy: Policy) -> str:
        """Have fenced commands held to a policy; return why that is not possible, or nothing."""
        from trimtab.workspace.sandbox.fence import Fence
        from trimtab.workspace.sandbox.fence_policy import build_fence_policy

        found = self._detect()
        if found.backend is None:
            return self.find_problem()
        shells = self._workspace.shells
        hidden = find_hidden(policy)
        if isinstance(hidden, str):
            return hidden
        known = (policy, hidden)
        if shells.fence is not None and self._known == known:
            return ""
        wanted = build_fence_policy(
            cwd=policy.cwd,
            readable=("/",) if policy.allow_all_paths else (*hidden.roots, *policy.readable),
            untrusted=policy.roots,
            denied=hidden.denied,
            env=self._workspace.child_env,
            temp=os.path.join(self._folder, "temp"),
        )
        self._known = known
        if shells.fence is None or shells.fence.policy != wanted:
            if shells.fence is not None:
                shells.fence.close()
            shells.fence = Fence(found.backend, wanted, found.program)
        return ""

    def trusts(self, programs: Iterable[str], policy: Policy) -> bool:
        """Return True if PATH finds all these programs outside the workspace."""
        from trimtab.workspace.sandbox.fence_policy import is_trusted

        path = self._workspace.child_env.get("PATH", os.defpath)
        folders = path.split(os.pathsep)
        roots = [os.path.realpath(root) for root in policy.roots]
        if not all(map(os.path.isabs, folders)):
            return False
        for name in programs:
            found = shutil.which(name, path=path)
            if found is not None and not is_trusted(os.path.dirname(found), roots):
                return False
        return True

    def _detect(self) -> "FoundFence":
        if self._found is None:
            from trimtab.workspace.sandbox.fence_detection import BACKENDS, detect_fence

            backends = [name for name in BACKENDS if self._wanted in ("auto", name)]
            self._found = detect_fence(self._workspace.child_env, backends)
            if self._found.backend is None:
                message = (
                    f"No fence works here ({', '.join(self._found.reasons)}): only commands that "
                    "are harmless as they are written run without a question."
                )
                self._session.emit(SessionInfo(info_type="sandbox", message=message))
        return self._found
