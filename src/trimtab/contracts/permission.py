"""May this happen? Rules, policies, decisions, and how somebody is asked."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from trimtab.contracts.assessment import Assess
from trimtab.contracts.events.envelope import JsonObject

Verdict = Literal["allow", "ask", "deny"]


class Rule(msgspec.Struct, frozen=True):
    """`kind(argument)`: an argument of None covers everything of the kind.

    `source` says where it was written: a flag, a file, an answer of this session. With a `root`
    the argument is a pattern for paths below that folder: content that is excluded.
    """

    kind: str
    argument: str | None = None
    source: str = "flag"
    root: str = ""

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed without asking. Deny beats everything, ask beats allow.

    `roots` are the directories in which paths are allowed: the working directory, those added, the
    session's own folder and, unless disallowed, the temp directory. Nothing in `homes`, the
    agent's own folders, is written by a tool, but for what it may keep in `session_folder`.
    `allow_destructive` lifts the question before what cannot be undone.
    """

    cwd: str
    roots: tuple[str, ...]
    home: str = ""
    homes: tuple[str, ...] = ()
    session_folder: str = ""
    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow_destructive: bool = False
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    late: tuple[Rule, ...] = ()
    """Those of them that came after a sandbox was set up, which does not hold to them."""
    readable: tuple[str, ...] = ()
    """Folders outside of the roots that may be read: those of skills the model is offered."""
    images: tuple[str, ...] = ()
    """Files that a person attached to a prompt, as they were then: read unasked while they are
    images."""
    git_programs: str = ""
    """The setting, if any, by which git would start programs in this repository."""
    writable: tuple[str, ...] | None = None
    """In a sandbox: the only places that may be written, whatever is allowed."""
    confined: bool = False
    """Whether commands need no question because the sandbox holds them to those places."""
    assess: Assess | None = None
    """Who reads scripts besides our own grammar."""
    client_judges: bool = False
    """Whether a client is asked about everything that no rule decides, harmless or not."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "may this happen?", with the reason as a sentence and the rule behind it."""

    verdict: Verdict
    reason: str
    rule: Rule | None = None
    harmless: bool = False
    """Whether it is allowed only because it is known to change nothing."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said to a permission question, in the protocol's words.

    `kind` is approve-once, approve-for-session, approve-for-location, approve-permanently, reject,
    deny-by-hook or user-not-available; `feedback` are a person's words for the model. `approval`
    narrows or widens what is remembered (`{"kind": "commands", "commandIdentifiers": […]}` and the
    like); without it the request decides.
    """

    kind: str
    feedback: str | None = None
    approval: JsonObject | None = None


Ask = Callable[[str, JsonObject], Awaitable[Answer]]
"""Given the request id and the permission request as it stands in the event, gives the answer."""
