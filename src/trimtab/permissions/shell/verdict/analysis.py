"""The result of reading a shell command: what it would do."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import can_name_command


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One command. `base` is its identifier without folders; `words` are its known words.

    `leading` are those before the first that is not known, so a rule may name them, without
    options that change nothing about what the command is.
    `shadow` marks a program that another one would start although its words are no command line
    (`npx X`): a deny rule counts for it, an allow rule is not needed. `doubtful` marks one that
    seems to only read but may do more, perhaps because a word that is not known may be an option.
    `literal` marks one whose words are all written out, `spelled` one in which patterns may stand
    besides. `places` are the paths that a program may have which is named by one. `given` are the
    files that it runs and the places of this machine that it gives to a container; `unclear` marks
    one of which a word may turn out to be an option.
    """

    identifier: str
    read_only: bool
    base: str
    words: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()
    shadow: bool = False
    doubtful: bool = False
    literal: bool = False
    spelled: bool = False
    places: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    unclear: bool = False


class Analysis(msgspec.Struct, kw_only=True):
    """Everything a decision needs. Paths are absolute where that could be worked out."""

    commands: list[Found] = []
    carried: list[Found] = []
    """Commands that may stand in texts which programs run in ways of their own (`man -P TEXT`).

    Only rules that deny or ask look at them: `hazards` say that something runs."""
    possible_paths: list[str] = []
    possible_urls: list[str] = []
    open_urls: list[str] = []
    """Words that say where a program connects, with a mark in them for what is not known."""
    targets: list[str | None] = []
    """Files that are written by redirection, or by an option; None is one that is not known."""
    writes: bool = False
    """True if one of them is written by redirection."""
    reads: list[str] = []
    """Places that commands which change nothing are told to look at."""
    touched: list[str] = []
    """Places that the other commands are given."""
    scripts: list[str] = []
    """Files that interpreters are given to run."""
    strays: str = ""
    """Why it may read files that are not among `reads`, if so."""
    deleted: list[str] = []
    hazards: list[str] = []
    """Why no rule may approve it."""
    doubts: list[str] = []
    """Why commands that seem to only read may do more; behind the fence they cannot."""
    conceals: str = ""
    """Why something may run that is not among the commands."""
    dynamic: list[str] = []
    """Reasons why something is not known before it runs."""
    destructive: list[str] = []
    proxied: bool = False
    """True if a variable is set that makes programs connect elsewhere than to the address named."""
    unsure: bool = False
    """True if something is deleted whose name is not known before it runs."""
    problem: str | None = None
    """Why it could not be read with certainty."""

    @property
    def is_trial(self) -> bool:
        """True if it is run although some of its programs are not known to only read."""
        return not self.doubts and any(found.doubtful for found in self.commands)

    @property
    def given(self) -> list[str]:
        """Places that commands which may change something are given, scripts included."""
        return [*self.touched, *self.scripts]

    @property
    def programs(self) -> list[str]:
        """The programs, without folders and subcommands."""
        return [found.base.partition(" ")[0] for found in self.commands]

    @property
    def read_only(self) -> bool:
        """Return True if it surely changes no file and starts nothing that it does not name."""
        return self.seems_read_only and all(found.read_only for found in self.commands)

    @property
    def seems_read_only(self) -> bool:
        """Return True if it is worth trying where it can do no harm."""
        return not (
            self.targets or self.hazards or self.dynamic or self.destructive or self.problem
        ) and all(found.read_only or found.doubtful for found in self.commands)

    @property
    def can_be_offered(self) -> bool:
        """True if a rule for its commands would cover it next time and can be offered."""
        return self.can_be_ruled and not self.targets

    @property
    def can_be_ruled(self) -> bool:
        """True if rules for its commands, and for the files it writes, would cover it next time."""
        reasons = (self.hazards, self.doubts, self.dynamic, self.destructive, self.problem)
        named = bool(self.commands) and all(can_name_command(f.identifier) for f in self.commands)
        return named and not any(reasons)

    @property
    def is_known(self) -> bool:
        """Return True if everything it starts is among its commands."""
        return not (self.dynamic or self.problem or self.conceals or self.doubts)

    def add_hazards(self, *reasons: str, conceals: bool = True) -> None:
        self.hazards += [reason for reason in reasons if reason not in self.hazards]
        if conceals and reasons:
            self.conceals = self.conceals or reasons[0]

    def describe(self) -> JsonObject:
        """The fields of a permission request."""
        return {
            "commands": [
                {"identifier": name, "readOnly": read_only}
                for name, read_only in dict.fromkeys(
                    (found.identifier, found.read_only)
                    for found in self.commands
                    if not found.shadow
                )
            ],
            "possiblePaths": list(self.possible_paths),
            "possibleUrls": [{"url": url} for url in self.possible_urls],
            "hasWriteFileRedirection": self.writes,
            "canOfferSessionApproval": self.can_be_offered,
        }
