"""Completions for `/command`, their arguments and `@file`."""

import re
from collections.abc import Callable, Sequence

import msgspec

from trimtab.transports.tui.files import FileIndex
from trimtab.transports.tui.view import Menu, MenuItem

_FILE = re.compile(r"(?:^|(?<=[\s(]))@(?:\"([^\"\n]*)|([^\s@\"]*))$")
_QUOTED = re.compile(r"[\s'`<>|]")
"""Characters that end a mention unless the path stands in quotes."""
_FAR = 4096
"""Characters before the caret that are looked at."""
WIDEST = 36
"""Characters of a usage in the menu; longer ones would hide what the command does."""
_COMMAND = re.compile(r"/([\w:.-]*)$")
_ARGUMENT = re.compile(r"/([\w:.-]+) +(\S*)$")


class CommandRow(msgspec.Struct, frozen=True, kw_only=True):
    """A command, skill or prompt file that can be typed as `/name`."""

    name: str
    arguments: str = ""
    help: str = ""
    source: str = ""
    while_busy: bool = True
    values: tuple[str, ...] = ()
    """Arguments that can be completed."""
    aliases: tuple[str, ...] = ()
    """Other names of the command."""
    find_values: Callable[[], Sequence[str]] | None = None
    """Finds such arguments, if they are not always the same."""

    def matches(self, query: str) -> bool:
        """Return True if the name contains the letters, or another name begins with them."""
        other = query and any(alias.startswith(query) for alias in self.aliases)
        return query in self.name.lower() or bool(other)


class Completion(msgspec.Struct, frozen=True):
    """A text to insert in place of the characters before the caret."""

    text: str
    replaced: int
    item: MenuItem


class Completer:
    """The completions for the text before the caret, and which of them is marked."""

    def __init__(self, commands: Callable[[], Sequence[CommandRow]], files: FileIndex) -> None:
        self._commands = commands
        self._files = files
        self.found: list[Completion] = []
        self.marked = 0
        self.moved = False
        """True if the person moved the mark."""

    @property
    def menu(self) -> Menu | None:
        """The menu to show, if there is anything to choose from."""
        if not self.found:
            return None
        return Menu(tuple(completion.item for completion in self.found), self.marked)

    @property
    def chosen(self) -> Completion | None:
        return self.found[self.marked] if self.found else None

    def update(self, before: str, *, busy: bool) -> None:
        """Find the completions for the text before the caret."""
        self.found = self._find(before, busy=busy)
        self.marked, self.moved = 0, False

    def offer(self, word: str, values: Sequence[str]) -> None:
        """Add values for the unfinished word that somebody else has found."""
        self.found += [
            Completion(value, len(word), MenuItem(value)) for value in values if value != word
        ]

    def close(self) -> None:
        self.found, self.marked, self.moved = [], 0, False

    def move(self, step: int) -> None:
        """Move the mark."""
        if self.found:
            self.marked = (self.marked + step) % len(self.found)
            self.moved = True

    def _find(self, before: str, *, busy: bool) -> list[Completion]:
        if (command := _COMMAND.fullmatch(before)) is not None:
            return self._find_commands(command[1].lower(), busy=busy)
        if (argument := _ARGUMENT.fullmatch(before)) is not None:
            return self._find_arguments(argument[1], argument[2])
        if (file := _FILE.search(before[-_FAR:])) is not None:
            if self._files.stale or not self._files.ready:
                self._files.start()
            typed = file[1] if file[1] is not None else file[2]
            return [
                Completion(mention(path), len(file[0]), MenuItem(path))
                for path in self._files.match(typed)
                if path != typed
            ]
        return []

    def _find_commands(self, query: str, *, busy: bool) -> list[Completion]:
        rows = [row for row in self._commands() if row.matches(query)]
        rows.sort(key=lambda row: (not row.name.lower().startswith(query), row.name))
        if len(rows) == 1 and rows[0].name == query and not rows[0].arguments:
            return []
        found = []
        for row in rows:
            blocked = busy and not row.while_busy
            remark = f"waits until the agent is done: {row.help}" if blocked else row.help
            source = f" ({row.source})" if row.source else ""
            label = f"/{row.name} {row.arguments}".rstrip()
            if len(label) > WIDEST:
                label = f"/{row.name} …"
            item = MenuItem(label, f"{remark}{source}", disabled=blocked)
            space = " " if row.arguments else ""
            found.append(Completion(f"/{row.name}{space}", len(query) + 1, item))
        return found

    def _find_arguments(self, name: str, query: str) -> list[Completion]:
        row = next((row for row in self._commands() if row.name == name), None)
        if row is None:
            return []
        values = row.values if row.find_values is None else row.find_values()
        return [
            Completion(value, len(query), MenuItem(value))
            for value in values
            if value.startswith(query) and value != query
        ]


def mention(path: str) -> str:
    """Return the text that attaches a file; a folder stays open for more of the path."""
    folder = path.endswith("/")
    if _QUOTED.search(path):
        return f'@"{path}' if folder else f'@"{path}" '
    return f"@{path}" if folder else f"@{path} "
