"""The fence of a session: detects what this machine can do, and follows the session's policy."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.moved_files import MovedFiles
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.permission import Policy, Rule

if TYPE_CHECKING:
    from trimtab.agents.setup import SessionSetup
    from trimtab.contracts.options import SandboxSettings
    from trimtab.permissions.denied_files import DeniedPaths
    from trimtab.workspace.sandbox.fence_detection import FoundFence
    from trimtab.workspace.sandbox.shield import Shield

LOOK_SECONDS = 1.0
"""Seconds after its start in which a session is left alone before a fence is looked for."""
OFFERED = "sandbox-offered"
"""The file in the home that remembers that the sandbox was offered."""
OFFER = (
    "Commands that run in the sandbox need no permission: they can change only this folder, undo "
    "takes that back, and new hosts are asked about once. To use it from the next session on: "
    '/settings sandbox {"enabled": true, "autoAllow": true}'
)


class SessionFence:
    """Confines the commands that nobody approved. Imports nothing before the first of them."""

    def __init__(self, setup: "SessionSetup", settings: "SandboxSettings | None") -> None:
        self._workspace = setup.workspace
        self._folder = setup.folder.path
        self._session = setup.session
        self._home = setup.home
        self._wanted = settings.fence if settings else "auto"
        self._found: FoundFence | None = None
        self._known: tuple[Policy, DeniedPaths, DeniedPaths] | None = None
        self._moved = MovedFiles()
        self._moved_kept = MovedFiles()
        self._rules: Sequence[Rule] = ()

    def look_ahead(self) -> None:
        """Look for a fence soon, so that people know of a missing one before the first command."""
        if self._wanted == "none":
            self._say_none("The fence is switched off")
        else:
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Try the backends in a thread: that takes longer than people should wait for a key."""
        if self._found is None and self._session.is_open:
            trying = asyncio.get_running_loop().run_in_executor(None, self._try_backends)
            trying.add_done_callback(self._looked)

    def _looked(self, trying: "asyncio.Future[FoundFence]") -> None:
        if self._session.is_open and not trying.cancelled():
            self._keep(trying.result())

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
        from trimtab.permissions.denied_files import find_secrets
        from trimtab.workspace.sandbox.fence import Fence
        from trimtab.workspace.sandbox.fence_policy import build_fence_policy

        found = self._detect()
        if found.backend is None:
            return self.find_problem()
        shells = self._workspace.shells
        denied = self._find_denied(policy)
        if denied.problem:
            return denied.problem
        granted = find_secrets(policy)
        known = (policy, denied, granted)
        if shells.fence is not None and self._known == known:
            return ""
        readable = (*denied.roots, *policy.readable, *granted.roots)
        wanted = build_fence_policy(
            cwd=policy.cwd,
            readable=("/",) if policy.allow_all_paths else readable,
            untrusted=policy.roots,
            denied=(*denied.paths, *granted.paths),
            env=self._workspace.child_env,
            temp=os.path.join(self._folder, "temp"),
        )
        self._known = known
        if shells.fence is None or shells.fence.policy != wanted:
            if shells.fence is not None:
                shells.fence.close()
            shells.fence = Fence(found.backend, wanted, found.program)
        return ""

    def shield(self, policy: Policy) -> str:
        """Keep what rules forbid to read or write from every command; return why that fails."""
        from trimtab.workspace.sandbox.shield import Shield

        shells = self._workspace.shells
        denied, kept = self._find_denied(policy), self._find_kept(policy)
        problem = denied.problem or kept.problem
        if problem or not (denied.paths or kept.paths):
            shells.shield = None
            return problem
        if shells.confinement is not None:
            shells.confinement.deny(denied.paths)
            shells.confinement.keep(kept.paths)
        found = self._detect_shield()
        if isinstance(found, str):
            problem = f"nothing keeps commands from files that rules forbid to read: {found}"
            return problem if denied.paths else ""
        if found.backend == "landlock" and not denied.paths:
            shells.shield = None
            return ""
        if found.backend == "landlock" and shells.shield is None:
            message = (
                "Files that a command creates beside one that a rule forbids to read cannot be "
                "read by the same command; install bubblewrap to avoid that."
            )
            self._session.emit(SessionInfo(info_type="sandbox", message=message))
        shells.shield = Shield(found.backend, denied.paths, found.program, kept.paths)
        return ""

    def follow(self, policy: Policy) -> None:
        """Let commands in the sandbox write where a changed policy lets them work."""
        if (confinement := self._workspace.shells.confinement) is not None:
            from trimtab.permissions.work_folders import find_opened

            confinement.let_write(find_opened(policy))

    def keeps_writes(self) -> bool:
        """Return True if commands can be kept from changing files that rules forbid to write."""
        confinement, found = self._workspace.shells.confinement, self._detect_shield()
        if confinement is not None and confinement.backend != "bubblewrap":
            return False
        return not isinstance(found, str) and found.keeps_writes

    def _detect_shield(self) -> "Shield | str":
        from trimtab.workspace.sandbox.shield import detect_shield

        return detect_shield(self._workspace.child_env.get("PATH", os.defpath))

    def _find_kept(self, policy: Policy) -> "DeniedPaths":
        """Find what must not be written, also under names that commands gave it since."""
        from trimtab.permissions.denied_files import denies_some_writes, find_denied_writes

        if not any(map(denies_some_writes, policy.deny)):
            return find_denied_writes(policy)
        self._heed_rules(policy)
        kept = find_denied_writes(policy, self._moved_kept.find())
        self._moved_kept.follow(kept.paths)
        return kept

    def _heed_rules(self, policy: Policy) -> None:
        """Follow no files any more that other rules forbade."""
        if policy.deny != self._rules:
            self._moved.forget()
            self._moved_kept.forget()
            self._rules = policy.deny

    def _find_denied(self, policy: Policy) -> "DeniedPaths":
        """Find what must not be read, also under names that commands gave it since."""
        from trimtab.permissions.denied_files import find_denied_reads

        self._heed_rules(policy)
        denied = find_denied_reads(policy, self._moved.find())
        self._moved.follow(denied.paths)
        if not denied.paths:
            return denied
        from trimtab.workspace.sandbox.mount_aliases import find_aliases

        paths = dict.fromkeys((*denied.paths, *find_aliases(denied.paths)))
        return msgspec.structs.replace(denied, paths=tuple(paths))

    def trusts(self, programs: Iterable[str], policy: Policy) -> bool:
        """Return True if PATH finds all these programs outside the workspace."""
        from shutil import which

        from trimtab.workspace.sandbox.fence_policy import is_trusted

        path = self._workspace.child_env.get("PATH", os.defpath)
        folders = path.split(os.pathsep)
        roots = [os.path.realpath(root) for root in policy.roots]
        if not all(map(os.path.isabs, folders)):
            return False
        for name in programs:
            found = which(name, path=path)
            if found is not None and not is_trusted(os.path.dirname(found), roots):
                return False
        return True

    def offer_sandbox(self) -> None:
        """Say once, to a person without a sandbox, that commands in one need no permission."""
        if self._home is None or self._workspace.shells.confinement is not None:
            return
        from trimtab.workspace.sandbox.detection import detect

        if detect(self._workspace.child_env).backend != "bubblewrap":
            return
        try:
            os.close(
                os.open(os.path.join(self._home.state, OFFERED), os.O_CREAT | os.O_EXCL, 0o600)
            )
        except OSError:  # offered before, or in a home that keeps nothing
            return
        self._session.emit(SessionInfo(info_type="sandbox", message=OFFER))

    def _detect(self) -> "FoundFence":
        return self._found or self._keep(self._try_backends())

    def _try_backends(self) -> "FoundFence":
        from trimtab.workspace.sandbox.fence_detection import BACKENDS, detect_fence

        backends = [name for name in BACKENDS if self._wanted in ("auto", name)]
        return detect_fence(self._workspace.child_env, backends)

    def _keep(self, found: "FoundFence") -> "FoundFence":
        """Keep what was found first, and say if it is nothing."""
        if self._found is None:
            self._found = found
            if found.backend is None and self._wanted != "none":
                self._say_none(f"No fence works ({', '.join(found.reasons)})")
        return self._found

    def _say_none(self, reason: str) -> None:
        message = f"{reason}: only commands that are harmless as they are written run unasked."
        self._session.emit(SessionInfo(info_type="sandbox", message=message))
