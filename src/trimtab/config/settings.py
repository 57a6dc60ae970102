"""Settings of the person, the repository and this checkout, merged; later levels win.

Files are read at most once per `Settings`, when the first setting is requested. If a file cannot be
parsed, its last good copy is used and the problem names the line.
"""

import os
from typing import Any, Literal, TypeVar

import msgspec

from trimtab.config.files import make_private_dir, read_regular, replace_file
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import Home
from trimtab.contracts.customization import Problem
from trimtab.contracts.errors import TrimtabError

Level = Literal["user", "repository", "local"]
T = TypeVar("T")

MAX_SIZE = 1024 * 1024
_FOLDER = os.path.join(".github", "copilot")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A value in a settings file. `overridden_by` is the level that overrides it, if any."""

    key: str
    value: Any
    level: Level
    file: str
    overridden_by: Level | None = None


class Settings:
    """Reads settings. `repository` is given only for a trusted folder: the caller checks trust.

    Objects are merged key by key; everything else is replaced by the later level. A repository
    cannot set keys that would widen permissions or affect other folders: those are reported.
    """

    def __init__(self, home: Home, repository: str | None = None) -> None:
        self._home = home
        self._files: list[tuple[Level, str]] = [("user", home.settings)]
        if repository is not None:
            folder = os.path.join(repository, _FOLDER)
            self._files += [
                ("repository", os.path.join(folder, "settings.json")),
                ("local", os.path.join(folder, "settings.local.json")),
            ]
        self._levels: list[tuple[Level, str, dict[str, Any]]] | None = None
        self._problems: list[Problem] = []

    @property
    def values(self) -> dict[str, Any]:
        """All settings, merged."""
        merged: dict[str, Any] = {}
        for _, _, values in self._read():
            _merge(merged, values)
        return merged

    @property
    def problems(self) -> tuple[Problem, ...]:
        self._read()
        return tuple(self._problems)

    @property
    def entries(self) -> list[Setting]:
        """Every top-level setting of every file, and which of them a later level overrides."""
        entries: list[Setting] = []
        levels = self._read()
        for index, (level, file, values) in enumerate(levels):
            for key, value in values.items():
                winner = next(
                    (name for name, _, later in levels[index + 1 :] if key in later), None
                )
                if isinstance(value, dict):
                    winner = None  # merged, not replaced
                entries.append(
                    Setting(key=key, value=value, level=level, file=file, overridden_by=winner)
                )
        return entries

    def get(self, key: str, kind: type[T], default: T) -> T:
        """Return the value of a dotted key. A value of another type is ignored and reported."""
        for level, file, values in reversed(self._read()):
            found, value = find_value(values, key)
            if not found:
                continue
            if kind is dict:
                found, value = find_value(self.values, key)
            try:
                return msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                message = f"the {level} setting {key} is ignored: {error}"
                self._note(Problem(message=message, file=file))
        return default

    def _note(self, problem: Problem) -> None:
        if problem not in self._problems:
            self._problems.append(problem)

    def _read(self) -> list[tuple[Level, str, dict[str, Any]]]:
        if self._levels is None:
            self._levels = []
            for level, file in self._files:
                values = self.load(file)
                if values:
                    self._levels.append((level, file, self._check(level, file, values)))
        return self._levels

    def load(self, file: str) -> dict[str, Any] | None:
        """Return the settings in a file, or its last good copy; None if there is neither."""
        try:
            data = read_regular(file, MAX_SIZE + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note(Problem(message=f"it cannot be read ({error.strerror})", file=file))
            return None
        try:
            values = parse_settings(data)
        except JsonProblem as error:
            return self._recover(file, error)
        self._keep_copy(file, data)
        return values

    def _recover(self, file: str, error: JsonProblem) -> dict[str, Any] | None:
        copy = self._copy_of(file)
        values = None
        try:
            with open(copy, "rb") as stream:
                values = parse_settings(stream.read(MAX_SIZE + 1))
            used = "its last good copy is used"
        except (OSError, JsonProblem):
            used = "it is left out"
        self._note(
            Problem(message=f"{error}; {used} until you correct it", file=file, line=error.line)
        )
        return values

    def _copy_of(self, file: str) -> str:
        # The path as a name: a digest would cost 15 ms of start-up for its module.
        name = os.path.realpath(file).replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self._home.state, "last-good", name)

    def _keep_copy(self, file: str, data: bytes) -> None:
        """Keep a copy, in case somebody saves half a file. A failure is not a problem yet."""
        copy = self._copy_of(file)
        try:
            with open(copy, "rb") as stream:
                if stream.read(MAX_SIZE + 1) == data:
                    return
        except OSError:
            pass
        try:
            make_private_dir(os.path.dirname(copy))
            replace_file(copy, data)
        except TrimtabError:
            return

    def _check(self, level: Level, file: str, values: dict[str, Any]) -> dict[str, Any]:
        """Remove the settings a level may not have; report unknown settings, but keep them."""
        anywhere, user = known_settings()
        kept = {}
        for key, value in values.items():
            if key in user and level != "user":
                message = f"{key} has no effect here: set it in {self._home.settings}"
                self._note(Problem(message=message, file=file))
                continue
            kept[key] = value
            if key.startswith("$"):  # `$schema` is for editors
                continue
            known = {**anywhere, **user}
            if key not in known and not any(name.startswith(key + ".") for name in known):
                self._note(Problem(message=f"unknown setting {key}", file=file, note=True))
            elif not has_type(known.get(key, "object"), value):
                expected = known.get(key, "object")
                self._note(
                    Problem(
                        message=f"{key} is ignored: it needs a value of type {expected}", file=file
                    )
                )
                del kept[key]
        return kept


def parse_settings(data: bytes) -> dict[str, Any]:
    """Return the settings in a file. Raises `JsonProblem`.

    `{"limits.maxTokens": 5}` becomes `{"limits": {"maxTokens": 5}}` where `limits` is an object.
    """
    if len(data) > MAX_SIZE:
        raise JsonProblem(f"it is larger than {MAX_SIZE // 1024} KB", 0)
    if not data.strip():
        return {}
    values = read_jsonc(data)
    if not isinstance(values, dict):
        raise JsonProblem("it is not a JSON object", 1)
    dotted = [key for key in values if "." in key]
    if dotted:
        anywhere, user = known_settings()
        known = {**anywhere, **user}
        for key in dotted:
            first, _, rest = key.partition(".")
            if known.get(first) == "object" and isinstance(values.get(first, {}), dict):
                _merge(values, {first: {rest: values.pop(key)}})
    return values


def _merge(into: dict[str, Any], values: dict[str, Any]) -> None:
    for key, value in values.items():
        existing = into.get(key)
        if isinstance(existing, dict) and isinstance(value, dict):
            merged = dict(existing)
            _merge(merged, value)
            into[key] = merged
        else:
            into[key] = value


def find_value(values: dict[str, Any], key: str) -> tuple[bool, Any]:
    """Return whether there is a value for a key, flat (`a.b`) or nested, and the value."""
    if key in values:
        return True, values[key]
    first, _, rest = key.partition(".")
    inner = values.get(first)
    return find_value(inner, rest) if rest and isinstance(inner, dict) else (False, None)


def known_settings() -> tuple[dict[str, str], dict[str, str]]:
    """Return the types of settings by name: those for any file, and those for the person's own."""
    path = os.path.join(os.path.dirname(__file__), "known_settings.json")
    with open(path, "rb") as file:
        groups = msgspec.json.decode(file.read(), type=dict[str, dict[str, str]])
    from trimtab.config.host_settings import HOST_SETTINGS

    host = {f"host.{name}": "boolean" for name in HOST_SETTINGS}
    return {**groups["anywhere"], **host}, groups["user"]


def has_type(expected: str, value: Any) -> bool:
    """Return True if a value has a type of `known_settings`."""
    match expected:
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "strings":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "object":
            return isinstance(value, dict)
        case _:
            return True
