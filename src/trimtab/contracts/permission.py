"""Permissions: rules, policies, decisions, and questions about them."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, Protocol

import msgspec

from trimtab.contracts.assessment import Assess
from trimtab.contracts.events.envelope import JsonObject

Verdict = Literal["allow", "ask", "deny"]
_NOT_IN_COMMANDS = frozenset("*,;|&<>()'\"`$\\\n")
_ACCENTS = dict.fromkeys(range(0x300, 0x370)) | dict.fromkeys(map(ord, "ßæœøłđðþÆŒØŁĐÞ"))
"""Accents and letters that are plainly no ASCII ones."""
_UNLIKE = frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL"))
"""First words of the names of characters that look like no Latin ones."""


class Rule(msgspec.Struct, frozen=True):
    """A rule written as `kind(argument)`; without an argument it covers everything of the kind.

    `source` names its origin: a flag, a file, an answer in this session. With a `root`, the
    argument is a pattern for paths below that folder whose content is excluded.
    """

    kind: str
    argument: str | None = None
    source: str = "flag"
    root: str = ""
    digest: str = ""
    """The description of an MCP tool that was approved; another one is asked about again."""

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"


def can_name_command(text: str) -> bool:
    """Return True if a rule with this argument is for one command, in words as they are typed."""
    program = text.partition(" ")[0]
    plain = _NOT_IN_COMMANDS.isdisjoint(text) and text[-1:] != ":"
    plain = plain and (text.isascii() or not find_lookalike(text))
    return plain and ":" not in program and program[:1] not in tuple("@!~-")


def find_lookalike(text: str) -> str:
    """Return the first word of a text with characters in it that only look like others.

    Paths may have accents in them, and words of languages that look like no other.
    """
    for word in text.split(" "):
        for part in re.split(r"[^\w\u00a0-\uffff]+", word):
            if not part.isascii() and _is_odd(part, in_path="/" in word):
                return part
    return ""


def _is_odd(word: str, *, in_path: bool) -> bool:
    from unicodedata import name, normalize

    if in_path:
        plain = normalize("NFD", word).translate(_ACCENTS)
        odd = [c for c in plain if not c.isascii() and name(c, "").partition(" ")[0] not in _UNLIKE]
        word, mixed = normalize("NFC", word), bool(odd)
    else:
        mixed = True
    return normalize("NFKC", word) != word or (mixed and re.search("[A-Za-z]", word) is not None)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that decide about actions. Deny beats everything, ask beats allow.

    `roots` are the directories in which paths are allowed: the working directory, added
    directories, the session's own folder and, unless disallowed, the temp directory. Tools may
    not write to `homes`, the agent's own folders, except in `session_folder`.
    `allow_destructive` skips the question before actions that cannot be undone.
    """

    cwd: str
    roots: tuple[str, ...]
    home: str = ""
    temp: str = ""
    """The temp directory, if it is one of the roots."""
    undone: tuple[str, ...] = ()
    """Folders in which the session records every change, so that all of it can be taken back."""
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
    """Rules added after the sandbox was set up, which does not enforce them."""
    readable: tuple[str, ...] = ()
    """Folders outside the roots that may be read: the folders of the model's skills."""
    granted: tuple[str, ...] = ()
    """Places that fenced commands under way read by rules for reading, apart from their secrets."""
    images: tuple[str, ...] = ()
    """Paths of files that a person attached to a prompt: read without asking if they are images."""
    git_programs: str = ""
    """The git setting, if any, by which git would start programs in this repository."""
    writable: tuple[str, ...] | None = None
    """In a sandbox: the only paths that may be written, whatever the rules allow."""
    keeps_writes: bool = False
    """True if the kernel keeps commands from changing existing files that rules forbid to write."""
    confined: bool = False
    """True if commands need no question because the sandbox confines them to `writable`."""
    assess: Assess | None = None
    """An assessor that reads scripts besides our own grammar."""
    always_ask: bool = False
    """True if a client is asked about everything that no rule decides, harmless or not."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Allow, ask or deny, with the reason as a sentence and the rule behind it."""

    verdict: Verdict
    reason: str
    rule: Rule | None = None
    harmless: bool = False
    """True if it seems to change nothing: it runs fenced. With a rule, it runs outside the fence
    if the fence stops it, or if there is none."""
    plain: frozenset[str] | None = None
    """The programs of a command that is harmless even without a fence."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a permission question, in the protocol's terms.

    `kind` is approve-once, approve-for-session, approve-for-location, approve-permanently, reject,
    deny-by-hook or user-not-available; `feedback` are a person's words for the model. `approval`
    narrows or widens what is remembered (`{"kind": "commands", "commandIdentifiers": […]}` and the
    like); without it the request decides.
    """

    kind: str
    feedback: str | None = None
    approval: JsonObject | None = None


class CommandFence(Protocol):
    """The kernel's hold on commands that run without anybody's answer."""

    @property
    def name(self) -> str:
        """The backend, as people are told: Landlock, bubblewrap, sandbox-exec or none."""
        ...

    def find_problem(self) -> str:
        """Return why no fence works on this machine, or an empty text."""
        ...

    def prepare(self, policy: Policy) -> str:
        """Have fenced commands held to a policy; return why that is not possible, or nothing."""
        ...

    def shield(self, policy: Policy) -> str:
        """Keep what rules forbid to read or write from every command; return why that fails."""
        ...

    def keeps_writes(self) -> bool:
        """Return True if commands can be kept from changing files that rules forbid to write."""
        ...

    def follow(self, policy: Policy) -> None:
        """Let commands in the sandbox write where a changed policy lets them work."""
        ...

    def trusts(self, programs: Iterable[str], policy: Policy) -> bool:
        """Return True if PATH finds all these programs outside the workspace."""
        ...

    def offer_sandbox(self) -> None:
        """Tell a person who is asked often that commands in a sandbox need no permission."""
        ...


Ask = Callable[[str, JsonObject], Awaitable[Answer]]
"""Takes the request id and the permission request as in the event; returns the answer."""
