"""Finds hooks in the files of the machine's policy, the person, the repository and plugins."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.config.paths import POLICY, Home
from trimtab.contracts.customization import AgentDefinition, Problem
from trimtab.contracts.hooks import EVENTS, GUARDS, FoundHooks, HookEntry, Origin, UnreadableGuard
from trimtab.customize.json_with_lines import LinedObject, parse_lined
from trimtab.customize.plugins import MANIFESTS
from trimtab.customize.reading import Listing, Walk, read_text

REPOSITORY = ".github/hooks"
REPOSITORY_SETTINGS = (
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
)
CLAUDE_SETTINGS = ".claude/settings.json"
PLUGIN_FILES = ("hooks.json", "hooks/hooks.json")
NAMES = {
    **{name: name for name in EVENTS},
    **{name[:1].upper() + name[1:]: name for name in EVENTS},
    "Stop": "agentStop",
    "UserPromptSubmit": "userPromptSubmitted",
}
MILLISECONDS = 1000
"""A `timeout` from this value on is in milliseconds: no hook may take that many seconds."""
KNOWN_FIELDS = frozenset(
    (
        *("type", "matcher", "hooks", "description", "comment", "statusMessage", "name"),
        *("command", "bash", "powershell", "exec", "args", "cwd", "env", "timeoutSec", "timeout"),
        *("url", "headers", "allowedEnvVars", "prompt"),
    )
)
NO_EFFECT = {
    "if": "a hook runs for everything its matcher names",
    "async": "a hook is waited for until its time is over",
    "asyncRewake": "a hook is waited for until its time is over",
    "once": "a hook runs every time",
    "shell": "commands run in bash",
    "model": "no model is asked by a hook",
    "continueOnBlock": "what a hook says is final",
    "sequential": "hooks of a kind run one after another",
}
"""Fields of other vendors, and why they have no effect."""


class _Source(msgspec.Struct, frozen=True):
    """The owner of a file. Relative folders are below `base`, or the session's if it is empty."""

    origin: Origin
    base: str = ""
    plugin: str = ""


def find_hooks(
    home: Home,
    repository: str | None,
    *,
    plugins: Sequence[str] = (),
    named: Sequence[str] = (),
    policy: str = POLICY,
    user: str = "",
) -> FoundHooks:
    """Return all hooks in the order in which they run.

    Pass `repository` only if it is trusted. `user` is the home directory, for Claude's settings;
    `named` are folders of hooks that a client names.
    `disableAllHooks` in the person's settings disables all hooks except the policy's; in the
    repository's settings only the repository's own, so that it cannot disable the person's guards.
    """
    reader = _Reader()
    reader.read_folder(policy, _Source("policy"))
    if reader.is_disabled(home.settings):
        return reader.found()
    for file in Walk(os.path.join(home.config, "hooks"), ".json").files:
        reader.read(file, _Source("user"))
    reader.read(home.settings, _Source("user"), is_settings=True)
    if user:
        reader.read(os.path.join(user, CLAUDE_SETTINGS), _Source("user"), is_settings=True)
    if repository is not None:
        _find_in_repository(reader, repository)
    for plugin in plugins:
        _find_in_plugin(reader, plugin)
    for folder in named:
        reader.read_folder(folder, _Source("user"))
    return reader.found()


def _find_in_repository(reader: "_Reader", root: str) -> None:
    files = [os.path.join(root, name) for name in REPOSITORY_SETTINGS]
    if any(reader.is_disabled(file) for file in files):
        return
    source = _Source("repository", root)
    reader.read_folder(os.path.join(root, REPOSITORY), source)
    for file in files:
        reader.read(file, source, is_settings=True)


def _find_in_plugin(reader: "_Reader", root: str) -> None:
    source = _Source("plugin", root, root)
    for name in PLUGIN_FILES:
        reader.read(os.path.join(root, name), source)
    for name in MANIFESTS:
        manifest = os.path.join(root, name)
        content = reader.load(manifest)
        if content is None:
            continue
        hooks = content.get("hooks")
        if isinstance(hooks, dict):
            reader.read(manifest, source, is_settings=True)
            return
        for path in [hooks] if isinstance(hooks, str) else hooks or ():
            _read_named(reader, manifest, str(path), source)
        return


def _read_named(reader: "_Reader", manifest: str, path: str, source: _Source) -> None:
    root = os.path.realpath(source.base)
    file = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath((root, file)) != root:
        message = f"hooks names {path}, which is outside the plugin; it is left out"
        reader.problems.append(Problem(message=message, file=manifest))
    elif file not in {os.path.join(root, name) for name in PLUGIN_FILES}:
        reader.read(file, source)


def read_agent_hooks(agent: AgentDefinition, root: str) -> FoundHooks:
    """Return the hooks in an agent's file."""
    reader = _Reader()
    source = _Source("repository", root)
    if agent.plugin:
        source = _Source("plugin", os.path.dirname(os.path.dirname(agent.path)))
    elif agent.origin not in ("project", "inherited"):
        source = _Source("user")
    for event, items in agent.hooks.items():
        reader.read_event(event, _as_objects(items), agent.path, source)
    return reader.found()


def _as_objects(value: Any) -> Any:
    """Convert dictionaries, which come from YAML, to the objects that `_Reader` expects."""
    if isinstance(value, list):
        return [_as_objects(item) for item in value]
    if isinstance(value, dict):
        return LinedObject({str(key): _as_objects(item) for key, item in value.items()})
    return value


def fingerprint(entry: HookEntry, root: str) -> str:
    """Return a digest of a hook and of the scripts in the repository that it names."""
    folder = os.path.relpath(os.path.join(root, entry.folder), root)
    described = msgspec.structs.replace(entry, file="", line=0, folder=folder)
    digest = hashlib.sha256(msgspec.json.encode(described, order="sorted"))
    for script in _scripts(entry, root):
        with open(script, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{digest.hexdigest()}"


def _scripts(entry: HookEntry, root: str) -> Iterable[str]:
    """Yield the programs in the repository that a command names."""
    text = " ".join((entry.command, entry.powershell, *entry.argv))
    text = re.sub(r"\$\{?CLAUDE_PROJECT_DIR\}?/", "", re.sub("[\"']", "", text))
    folder, real_root = os.path.join(root, entry.folder), os.path.realpath(root)
    for word in dict.fromkeys(re.split(r"[\s`;&|<>(){}=]+", text)):
        for base in (folder, root):
            path = os.path.realpath(os.path.join(base, word))
            below = path.startswith(real_root + os.sep)
            if word and below and os.path.isfile(path) and _is_program(path):
                yield path
                break


def _is_program(path: str) -> bool:
    suffixes = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".php")
    return path.endswith(suffixes) or os.access(path, os.X_OK)


class _Reader:
    """Reads files of hooks, and collects hooks and problems."""

    def __init__(self) -> None:
        self.entries: list[HookEntry] = []
        self.unreadable: list[UnreadableGuard] = []
        self.problems: list[Problem] = []
        self.fields: dict[tuple[str, int], tuple[str, ...]] = {}
        self._loaded: dict[str, LinedObject | None] = {}
        self._texts: dict[str, str] = {}
        """The texts of files, also of those that cannot be parsed."""

    def found(self) -> FoundHooks:
        return FoundHooks(
            entries=tuple(self.entries),
            unreadable=tuple(self.unreadable),
            problems=tuple(self.problems),
            fields=self.fields,
        )

    def is_disabled(self, settings: str) -> bool:
        content = self.load(settings)
        return content is not None and content.get("disableAllHooks") is True

    def read_folder(self, folder: str, source: _Source) -> None:
        for name in Listing(folder).names:
            if name.endswith(".json"):
                self.read(os.path.join(folder, name), source)

    def read(self, file: str, source: _Source, *, is_settings: bool = False) -> None:
        content = self.load(file)
        if content is None and (not is_settings or '"hooks"' in self._texts.get(file, "")):
            self._add_guard(file, source)
        if content is None or content.get("disableAllHooks") is True:
            return
        if not is_settings and content.get("version", 1) != 1:
            problem = f"version {content['version']!r} is not known"
            self._leave_out(problem, file, source, content.line, self._find_guard(file))
            return
        hooks = content.get("hooks")
        if hooks is None and (is_settings or "contentExclusion" in content):
            return
        if not isinstance(hooks, LinedObject):
            problem = "there is no object hooks in it"
            self._leave_out(problem, file, source, content.line, self._find_guard(file))
            return
        for event, items in hooks.items():
            self.read_event(event, items, file, source, hooks.line)

    def _add_guard(self, file: str, source: _Source) -> None:
        """Add an unreadable guard for a file that cannot be read, because it may contain one."""
        found = [problem for problem in self.problems if problem.file == file and not problem.note]
        if found:
            self._refuse("preToolUse", found[0], source)

    def _leave_out(self, problem: str, file: str, source: _Source, line: int, guard: str) -> None:
        """Report what is left out. If a guard may be in it, that denies everything."""
        self._note(
            f"{problem}; {'it denies everything' if guard else 'it is left out'}", file, line
        )
        if guard:
            self._refuse(guard, Problem(message=problem, file=file, line=line), source)

    def _refuse(self, guard: str, problem: Problem, source: _Source) -> None:
        self.unreadable.append(
            UnreadableGuard(
                event=guard,
                origin=source.origin,
                file=problem.file,
                line=problem.line,
                problem=problem.message,
            )
        )

    def _find_guard(self, file: str) -> str:
        """Return the guard that a file names, whatever else is in it, or an empty text."""
        return next((guard for guard in sorted(GUARDS) if guard in self._texts.get(file, "")), "")

    def load(self, file: str) -> LinedObject | None:
        """Return the object in a file; None if the file does not exist or is unusable."""
        if file not in self._loaded:
            self._loaded[file] = self._load(file) if os.path.lexists(file) else None
        return self._loaded[file]

    def _load(self, file: str) -> LinedObject | None:
        text, problems = read_text(file)
        self.problems.extend(problems)
        if not text.strip():
            return None
        self._texts[file] = text
        try:
            content = parse_lined(text)
        except ValueError as error:
            line = getattr(error, "lineno", 1)
            self._note(f"it is not JSON: {getattr(error, 'msg', error)}", file, line)
            return None
        except RecursionError:
            self._note("it is nested too deeply", file, 1)
            return None
        if isinstance(content, LinedObject):
            return content
        self._note("it is not a JSON object", file, 1)
        return None

    def read_event(self, name: str, items: Any, file: str, source: _Source, line: int = 0) -> None:
        event = NAMES.get(name)
        if event is None:
            self._read_misspelt(name, file, source, line)
            return
        for item in items if isinstance(items, list) else [items]:
            group = item.get("hooks") if isinstance(item, LinedObject) else None
            for hook in group if isinstance(group, list) else [item]:
                if isinstance(hook, LinedObject):
                    fields = hook if hook is item else _with_matcher(hook, item)
                    entry = _Entry(self, fields, file, event).build(source, name[:1].isupper())
                    self.entries += [entry] if entry else []
                else:
                    problem = f"an entry of {name} is not an object"
                    guard = event if event in GUARDS else ""
                    self._leave_out(problem, file, source, line, guard)

    def _read_misspelt(self, name: str, file: str, source: _Source, line: int) -> None:
        """Report an event that there is not; a guard may have been meant."""
        from difflib import get_close_matches

        near = get_close_matches(name, NAMES, 1, cutoff=0.8)
        meant = NAMES[near[0]] if near else ""
        advice = f", perhaps {near[0]} is meant" if near else ""
        problem = f"there is no hook event {name}{advice}"
        self._leave_out(problem, file, source, line, meant if meant in GUARDS else "")

    def _note(self, message: str, file: str, line: int = 0) -> None:
        self.problems.append(Problem(message=message, file=file, line=line))


def _with_matcher(inner: LinedObject, group: LinedObject) -> LinedObject:
    """Return an entry with the matcher of its group."""
    fields = LinedObject({"matcher": group.get("matcher"), **inner})
    fields.line = inner.line
    return fields


class _Entry:
    """Reads one entry."""

    def __init__(self, reader: _Reader, fields: LinedObject, file: str, event: str) -> None:
        self._reader = reader
        self._fields = fields
        self._file = file
        self._event = event

    def build(self, source: _Source, claude: bool) -> HookEntry | None:
        self._note_fields()
        kind = self._text("type") or self._guess_type()
        if problem := self._find_problem(kind):
            guards = self._event in GUARDS
            self._note(f"{problem}; the hook {'denies everything' if guards else 'is left out'}")
            if guards:
                self._add_guard(source, problem)
            return None
        return HookEntry(
            event=self._event,
            type=kind,  # type: ignore[arg-type]
            origin=source.origin,
            file=self._file,
            line=self._fields.line,
            claude=claude,
            matcher=self._matcher(),
            folder=self._folder(source),
            env=self._texts("env"),
            seconds=self._seconds(60 if claude else 30),
            url=self._text("url"),
            headers=self._texts("headers"),
            allowed_env=self._names("allowedEnvVars"),
            prompt=self._text("prompt") if kind == "prompt" else "",
            plugin=source.plugin,
            **self._program(),
        )

    def _add_guard(self, source: _Source, problem: str) -> None:
        guard = UnreadableGuard(
            event=self._event,
            origin=source.origin,
            file=self._file,
            line=self._fields.line,
            problem=problem,
        )
        self._reader.unreadable.append(guard)

    def _note_fields(self) -> None:
        self._reader.fields[self._file, self._fields.line] = tuple(
            name for name, value in self._fields.items() if value is not None
        )
        for name in self._fields:
            if name not in KNOWN_FIELDS:
                why = NO_EFFECT.get(name, "it is not known")
                self._note(f"{name} has no effect: {why}", name)

    def _guess_type(self) -> str:
        kinds = {"url": "http", "prompt": "prompt"}
        return next((kinds[name] for name in kinds if name in self._fields), "command")

    def _find_problem(self, kind: str) -> str:
        match kind:
            case "command":
                given = any(self._text(name) for name in ("bash", "command", "powershell", "exec"))
                return "" if given else "it names no command"
            case "http":
                return "" if self._text("url") else "it names no url"
            case "prompt" if self._event != "sessionStart":
                return "a prompt can only be given at sessionStart"
            case "prompt":
                return "" if self._text("prompt") else "it has no prompt"
            case _:
                return f"the type {kind!r} is not known"

    def _program(self) -> dict[str, Any]:
        arguments = self._names("args")
        program = self._text("exec") or (self._text("command") if "args" in self._fields else "")
        if program:
            return {"argv": (program, *arguments)}
        command = self._text("bash") or self._text("command")
        return {"command": command, "powershell": self._text("powershell")}

    def _matcher(self) -> str:
        matcher = self._text("matcher")
        try:
            re.compile(matcher if matcher != "*" else "")
        except re.error as error:
            self._note(f"the matcher {matcher!r} is not a regular expression ({error})")
        return matcher

    def _folder(self, source: _Source) -> str:
        return os.path.join(source.base, os.path.expanduser(self._text("cwd")))

    def _seconds(self, default: float) -> float:
        for name in ("timeoutSec", "timeout"):
            value = self._fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                self._note(f"{name} must be a number greater than 0; {default:g} seconds are used")
                return default
            return value / 1000 if name == "timeout" and value >= MILLISECONDS else float(value)
        return default

    def _text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self._note(f"{name} must be text")
        return ""

    def _names(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._note(f"{name} must be a list of texts")
        return ()

    def _texts(self, name: str) -> Mapping[str, str]:
        value = self._fields.get(name, {})
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return dict(value)
        self._note(f"{name} must be an object of texts")
        return {}

    def _note(self, message: str, field: str = "") -> None:
        line = self._fields.line
        entry = f"line {line}" if line else ""
        note = field in NO_EFFECT
        problem = Problem(
            message=message, file=self._file, line=line, field=field, entry=entry, note=note
        )
        if problem not in self._reader.problems:
            self._reader.problems.append(problem)
