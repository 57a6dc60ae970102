"""The state of permissions that all agents of a session share."""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import msgspec

from trimtab.contracts.permission import Policy, Rule

CanRestore = Callable[[Sequence[str]], Awaitable[bool]]
Track = Callable[[Sequence[str]], None]
"""Has undo record what changes in folders."""
FindExcluded = Callable[[Sequence[str]], Iterable[Rule]]
"""Given folders, gives rules that deny the content that is excluded in them."""


class Standing(msgspec.Struct):
    """The policy, and what was offered and answered in the session."""

    given: Policy
    """The policy and the answers, without the folders that its rules open for work."""
    offered: tuple[str, ...] = ()
    """The titles of the bundles of rules that the person could allow at once."""
    reading: dict[tuple[int, str], tuple[str, ...]] = {}
    """By judge and call, what a fenced command reads outside the allowed directories."""
    commands_asked: int = 0
    """Questions about commands that a person answered."""
    can_restore: CanRestore | None = None
    """Tells whether undo covers some paths, or everything if none are given."""
    _track: Track | None = None
    _tracked: frozenset[str] = frozenset()
    _find_excluded: FindExcluded | None = None
    _searched: frozenset[str] = frozenset()
    """The folders whose exclusions the policy holds already."""
    _widened: tuple[Policy, Policy] | None = None

    @property
    def policy(self) -> Policy:
        if self._widened is None or self._widened[0] is not self.given:
            self._widened = self.given, self._widen()
        return self._widened[1]

    def change(self, policy: Policy) -> None:
        """Judge by another policy; what it opens is recorded, but for what is excluded there."""
        self.given = self._exclude(policy)
        self._record()

    def rely_on_undo(self, can_restore: CanRestore, track: Track) -> None:
        """Let undo cover the folders that are opened for work, and what it surely brings back."""
        self.can_restore, self._track = can_restore, track
        self._record()

    def _record(self) -> None:
        opened = [folder for folder in self.policy.undone if folder not in self.given.undone]
        new = [folder for folder in opened if folder not in self._tracked]
        if new and self._track is not None:
            self._track(new)
            self._tracked |= frozenset(new)

    def follow_exclusions(self, find: FindExcluded, known: Iterable[str]) -> None:
        """Deny what is excluded in every folder that rules open, besides those that are known."""
        self._find_excluded = find
        self._searched = frozenset(map(os.path.realpath, known))
        self.change(self.given)

    def _exclude(self, policy: Policy) -> Policy:
        if self._find_excluded is None:
            return policy
        new = [folder for folder in _list_open(policy) if folder not in self._searched]
        if not new:
            return policy
        rules = [rule for rule in self._find_excluded(new) if rule not in policy.deny]
        self._searched |= frozenset(new)
        return msgspec.structs.replace(
            policy, deny=(*policy.deny, *rules), late=(*policy.late, *rules)
        )

    def _widen(self) -> Policy:
        if not any(rule.kind == "write" and rule.argument for rule in self.given.allow):
            return self.given
        from trimtab.permissions.work_folders import widen

        return widen(self.given)


def _list_open(policy: Policy) -> Iterator[str]:
    """Yield the folders that a policy lets be read as a whole."""
    yield from policy.roots
    rules = [rule for rule in policy.allow if rule.kind in ("read", "write") and rule.argument]
    if not rules:
        return
    from trimtab.permissions.read_folders import name_folder
    from trimtab.permissions.work_folders import name_work_folder

    yield from filter(None, (name_folder(rule) or name_work_folder(rule) for rule in rules))
