"""Decides whether a session may use its folder's configuration, and reports what is left out."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from trimtab.config.paths import Home
from trimtab.config.trust import Trust, find_loadable, find_root
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.own import LeftOut
from trimtab.contracts.questions import AskTrust, Loadable, TrustQuestion
from trimtab.contracts.run import SessionPort

REVIEWED = frozenset(("hooks", "lsp", "mcp", "tools"))
"""Kinds whose entries are trusted one by one, as they are; later entries are not."""
SWITCHES = {
    "hooks": "GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS",
    "mcp": "GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP",
    "extensions": "GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS",
}
"""Variables that allow a kind to load if nobody can be asked."""


class FolderTrust(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about a folder: `root` is its repository, `items` what it would load.

    `switched` names the kinds that load although it is not trusted; `for_now` is true if only this
    run trusts it, whatever it contains.
    """

    root: str
    trusted: bool
    items: tuple[Loadable, ...] = ()
    switched: tuple[str, ...] = ()
    for_now: bool = False
    home: Home
    ask: AskTrust | None = None
    remembers: bool = True
    """False for a dry run: nothing that is accepted is remembered."""

    def allows(self, kind: str) -> bool:
        return self.trusted or kind in self.switched

    def report(self, session: SessionPort) -> None:
        """Emit an event about what is not loaded, if anything."""
        left = [item for item in self.items if not self.allows(item.kind)]
        if left:
            message = (
                f"{self.root} is not trusted, so this was not loaded: {_join(left)}. "
                "Start with --trust-folder to use it."
            )
            _emit(session, self.root, "untrusted", left, message)

    async def admit(
        self, session: SessionPort, kind: str, entries: Sequence[tuple[Loadable, str]]
    ) -> list[bool]:
        """Return for each entry (with its digest) whether it may load.

        Entries that changed since they were trusted need an answer; if nobody can be asked, they
        are left out, with an event.
        """
        if not entries or self.for_now or not self.trusted:
            return [True] * len(entries)
        trust = Trust(self.home)
        known = [trust.accepts(self.root, kind, item.path, digest) for item, digest in entries]
        changed = [item for (item, _), same in zip(entries, known, strict=True) if not same]
        if changed:
            question = TrustQuestion(folder=self.root, items=tuple(changed), changed=True)
            answer = await self.ask(question) if self.ask else "no"
            if answer == "no":
                message = (
                    f"This was changed or added after {self.root} was trusted, so it was not "
                    f"loaded: {_join(changed)}. Start with --trust-folder to use it."
                )
                _emit(session, self.root, "changed", changed, message)
                return known
            if answer == "once":
                return [True] * len(entries)
        if self.remembers and (changed or not trust.has_seen(self.root, kind)):
            trust.accept(self.root, kind, [(item.path, digest) for item, digest in entries])
        return [True] * len(entries)

    def remember(self, kind: str) -> None:
        """Remember that a kind was reviewed, so that later entries count as new."""
        if self.trusted and not self.for_now and self.remembers:
            trust = Trust(self.home)
            if not trust.has_seen(self.root, kind):
                with suppress(
                    OSError, ConfigurationError
                ):  # if it cannot be stored, the person is asked again
                    trust.accept(self.root, kind, ())


async def judge_folder(
    home: Home,
    cwd: str,
    env: Mapping[str, str],
    *,
    trusted: bool,
    ask: AskTrust | None,
    remembers: bool = True,
) -> FolderTrust:
    """Decide about the folder of a session; ask a person if needed and possible."""
    root = find_root(cwd)
    items = find_loadable(root, cwd)
    verdict = FolderTrust(
        root=root,
        trusted=trusted,
        for_now=trusted,
        items=items,
        home=home,
        ask=ask,
        remembers=remembers,
    )
    if trusted:
        return verdict
    trust = Trust(home)
    if trust.is_trusted(root):
        verdict = msgspec.structs.replace(verdict, trusted=True)
        for kind in REVIEWED - {item.kind for item in items}:
            verdict.remember(kind)
        return verdict
    if items and ask is not None:
        answer = await ask(TrustQuestion(folder=root, items=items))
        if answer == "always":
            trust.trust(root)
        return msgspec.structs.replace(verdict, trusted=answer != "no", for_now=answer == "once")
    switched = [kind for kind, name in SWITCHES.items() if env.get(name, "") in ("1", "true")]
    return msgspec.structs.replace(verdict, switched=tuple(switched))


def _emit(
    session: SessionPort, root: str, reason: str, left: Sequence[Loadable], message: str
) -> None:
    items = [{"kind": item.kind, "path": item.path} for item in left]
    session.emit(LeftOut(folder=root, reason=reason, items=items, message=message))


def _join(items: Sequence[Loadable]) -> str:
    named = [f"{item.path} ({item.kind})" for item in items[:10]]
    more = [f"{len(items) - 10} more"] if len(items) > 10 else []
    return ", ".join(named + more)
