"""Rules of the form `kind(argument)`: reading them, and what they cover."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Rule, can_name_command, find_lookalike
from trimtab.contracts.tool import Access
from trimtab.permissions.groups import (
    MARK,
    covers_program,
    find_group,
    find_members,
    load_groups,
    load_whole_programs,
)
from trimtab.permissions.paths import fold, is_inside, is_protected, resolve
from trimtab.permissions.read_folders import covers_below, name_folder

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.analysis import Found

_RULE = r"([A-Za-z0-9_@][\w@./:-]*)(?:\((.*)\))?"
_ALIASES = {
    "bash": "shell",
    "edit": "write",
    "create": "write",
    "apply_patch": "write",
    "view": "read",
    "grep": "read",
    "rg": "read",
    "glob": "read",
    "web_fetch": "url",
}
_FOREIGN = {
    "shell": "sh zsh cmd command commands exec execute run run_shell run_command shell_command "
    "run_terminal_command powershell pwsh",
    "url": "webfetch fetch_url domain network",
    "write": "multiedit notebookedit write_file edit_file str_replace_editor",
    "read": "read_file view_file",
}
"""Names by which programs and people call these kinds, with an argument."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that nobody sees, so that nobody can tell why a rule covers nothing."""
_ALL_TOOLS = frozenset(("all", "any", "everything", "tools", "none"))
KINDS = ("shell", "bash", "write", "read", "url", "memory")
"""The kinds of rules; any other word is the name of a tool or a server."""
HERE = "./"
"""As the argument of a rule: the programs in the working directory and below, named by a path."""
_SYNTAX = "write shell(git:*), write(PATH), url(example.com), SERVER(TOOL) or a tool's name"


def parse_rule(text: str, source: str = "flag") -> Rule:
    """Read one rule. Raises `UsageError` that names it."""
    match = re.fullmatch(_RULE, text.strip(), re.DOTALL)
    if match is None:
        raise UsageError(f"The permission rule {text!r} cannot be read; {_SYNTAX}.")
    kind, argument = match[1], match[2]
    if problem := _find_lookalike(kind, argument) or _find_tool_problem(kind, argument):
        raise UsageError(f"The permission rule {text!r} is wrong: {problem}.")
    if argument is None and find_group(kind) is not None:
        raise UsageError(f"The permission rule {text!r} names a group; write shell({kind}).")
    if intended := _find_misspelt(kind):
        raise UsageError(
            f"The permission rule {text!r} has an unknown kind; did you mean {intended}?"
        )
    if argument is not None and (meant := _find_meant(kind)):
        intended = f"{meant}({argument.removeprefix('domain:')})"
        raise UsageError(
            f"The permission rule {text!r} has the unknown kind {kind}; write {intended}, "
            f"or mcp__{kind}__TOOL for the tool of a server."
        )
    if argument is not None:
        kind, argument = _read_argument(text, kind, argument)
    return Rule(kind, argument, source)


def _read_argument(text: str, kind: str, argument: str) -> tuple[str, str | None]:
    """Return the kind and the argument that count. Raises `UsageError` if they cover nothing."""
    argument = argument.strip()
    if problem := _find_problem(kind, argument):
        raise UsageError(f"The permission rule {text!r} is wrong: {problem}.")
    if _covers_all(_ALIASES.get(kind, kind), argument):
        return kind, None
    # What stands in the parentheses is a path or an address, which other tools reach, too.
    return (kind if kind == "bash" else _ALIASES.get(kind, kind)), argument


def _covers_all(meant: str, argument: str) -> bool:
    """Return True for `shell(*)`, `bash(*)` and `SERVER(*)`; an address has a star of its own."""
    return (argument == "*" and meant != "url") or (argument == ":*" and meant == "shell")


def _find_misspelt(kind: str) -> str:
    """Return the kind that was meant by a word that is almost one, or an empty text."""
    if kind in KINDS or len(kind) < len("url"):
        return ""
    words = {word.lower(): word for word in (*KINDS, *_ALIASES)}
    if kind not in _ALIASES and kind.lower() in words:
        return words[kind.lower()]
    if (beginning := kind.partition(":")[0]) in KINDS:  # `shell:rm`
        return f"{beginning}({kind.partition(':')[2]})"
    from difflib import get_close_matches

    close = get_close_matches(kind.lower(), KINDS, 1, cutoff=0.85)
    return close[0] if close and kind not in _ALIASES else ""


def _find_tool_problem(kind: str, argument: str | None) -> str:
    """Return why a rule for a tool or a server would cover nothing."""
    if argument is None and kind.lower() in _ALL_TOOLS:
        return "no tool is called so; write shell, write, read, url or a tool's name"
    if kind.startswith("mcp_") and not re.fullmatch(r"mcp__[^_].*|mcp_[^_]+", kind):
        return "it names no server; write mcp__SERVER, mcp__SERVER__TOOL or SERVER(TOOL)"
    return ""


def _find_meant(kind: str) -> str:
    """Return the kind of rule that other programs call by another name, or an empty text."""
    name = kind.lower().replace("-", "_")
    return next((meant for meant, names in _FOREIGN.items() if name in names.split()), "")


def _find_lookalike(kind: str, argument: str | None) -> str:
    """Return what is wrong with characters that look like others, and so cover nothing."""
    texts = (kind,) if argument is None or kind in ("read", "write", "url") else (kind, argument)
    word = next(filter(None, (find_lookalike(text) for text in texts if not text.isascii())), "")
    return f"{word!r} has characters in it that look like others; type it anew" if word else ""


def is_kind(name: str) -> bool:
    """Return True if a name stands for a kind of rules; other names are those of tools."""
    return name in KINDS or name in _ALIASES


def parse_rules(texts: Iterable[str], source: str = "flag") -> tuple[Rule, ...]:
    return tuple(parse_rule(text, source) for text in texts)


def _find_problem(kind: str, argument: str) -> str | None:
    """Return why an argument would not cover what it seems to."""
    meant = _ALIASES.get(kind, kind)
    if unseen := _UNSEEN.search(argument):
        return f"it has the invisible character U+{ord(unseen[0]):04X} in it; type it anew"
    if not argument:
        return f"nothing stands in the parentheses; write {kind} alone to mean everything"
    match meant:
        case "memory":
            problem: str | None = "memory takes no argument; write memory"
        case "shell":
            problem = _find_command_problem(kind, argument)
        case "write" | "read":
            problem = _find_path_problem(argument)
        case "url" if not _is_address(argument):
            forms = f"{kind}(example.com) or {kind}(https://*.example.com)"
            problem = f"that is not an address; write {forms}"
        case _ if meant not in KINDS and re.search("""[*,'":\\s]""", argument) and argument != "*":
            problem = f"that is not the name of a tool; name one tool, or write {kind} for all"
        case _:
            problem = None
    return problem


def _find_command_problem(kind: str, argument: str) -> str | None:
    name = argument.removesuffix(":*").rstrip()
    if argument[0] in "!~-" and not argument.endswith("/"):
        form = f"write {kind}(NAME), with a path in full"
        return f"no command begins with {argument[0]} as it is read; {form}"
    if argument.startswith(MARK):
        known = ", ".join(MARK + name for name in load_groups())
        unknown = f"there is no such group of commands; write one of {known}"
        return None if find_group(argument) is not None else unknown
    if argument.endswith("/"):
        unclear = f"a folder is named in full, from / on; write {kind}(/FOLDER/) or {kind}(./)"
        return None if _is_whole_folder(argument) else unclear
    if argument in ("*", ":*") or can_name_command(name):
        return None
    if "*" in name or name.endswith(":"):
        stem = name.partition("*")[0].rstrip(": ") or "NAME"
        return f"a command takes no pattern; write {kind}({stem}:*)"
    form = f"write {kind}(NAME) or {kind}(NAME WORD), and a rule for each command"
    return f"it names no single command, in plain words without quotes or signs; {form}"


def _is_whole_folder(argument: str) -> bool:
    plain = argument == os.path.normpath(argument).rstrip(os.sep) + os.sep
    return argument == HERE or (os.path.isabs(argument) and plain)


def _find_path_problem(argument: str) -> str | None:
    if re.search(r"[*?]", argument):
        return "a path takes no pattern; name one file, or write the kind alone"
    if re.fullmatch(r"""'.*'|".*\"""", argument, re.DOTALL):
        return "a path takes no quotes; write it as it is"
    if ", " in argument and argument[0] not in "/~":
        return "a rule names one file; write a rule for each, or the path in full"
    if argument[0] == "~" and os.path.expanduser(argument)[0] == "~":
        return "there is no such user; write ~/ for the home folder, or the path in full"
    if re.match(r"\$\{?[A-Za-z_]", argument):
        return "a path takes no variable; write ~ for the home folder, or the path in full"
    return None


def _is_address(text: str) -> bool:
    from trimtab.permissions.urls import parse_pattern

    return parse_pattern(text) is not None


def name_rule(rule: Rule) -> str:
    """A rule as the reason of a decision names it."""
    if rule.root:
        return f"The content exclusion {rule.argument!r} of {rule.source}"
    return f"The rule {rule}"


def matches_command(rule: Rule, found: "Found", *, denies: bool = False) -> bool:
    """Return True if a shell rule covers a command: its name, or the words it begins with.

    A deny rule also covers it by its base name.
    """
    if _kind(rule, denies=denies) != "shell":
        return False
    if rule.argument is None:
        return True
    names = {found.identifier, found.base} if denies else {found.identifier}
    if not rule.argument.startswith(MARK):
        return _names_command(rule.argument, names, found, denies=denies)
    programs = {name.partition(" ")[0] for name in names}
    if rule.argument.removeprefix(MARK) in load_whole_programs():
        if denies:
            return rule.argument.removeprefix(MARK) in programs
        return covers_program(rule.argument, found.leading, found.words)
    members = (name for program in programs for name in find_members(rule.argument, program))
    return any(_names_command(name, names, found, denies=denies) for name in members)


def _names_command(argument: str, names: set[str], found: "Found", *, denies: bool) -> bool:
    stem = argument.removesuffix(":*").rstrip()
    takes_more = stem != argument
    if denies and os.path.isabs(stem) and "/" not in "".join(found.words[:1]):
        # The name alone may lead there, too: `shell(/bin/rm)` is for `rm`.
        stem = stem[len(os.path.dirname(stem.partition(" ")[0]).rstrip("/")) + 1 :]
    if takes_more and any(name.startswith(stem + " ") for name in names):
        return True
    if stem in names:
        return True
    return _begins_with(found, tuple(stem.split()), denies=denies)


def runs_from(rule: Rule, found: "Found", cwd: str) -> bool:
    """Return True if a rule for the programs of a folder, `shell(./)`, covers a command.

    A folder is taken as it is written: if a link replaces it, nothing in it is covered.
    """
    folder = _name_programs(rule)
    if not folder or len(found.places) != 1:
        return False
    program = found.places[0]
    if folder == HERE:
        return is_inside(program, (cwd,)) and not is_protected(program)
    return fold(resolve(program)).startswith(fold(folder))


def may_run_from(rule: Rule, paths: Iterable[str], cwd: str) -> bool:
    """Return True if one of these programs is in the folder of a rule, by whatever links.

    For rules that deny.
    """
    folder = _name_programs(rule)
    places = (os.path.join(cwd, folder), resolve(os.path.join(cwd, folder))) if folder else ()
    beginnings = [fold(os.path.normpath(place)).rstrip(os.sep) + os.sep for place in places]
    return any(
        fold(seen).startswith(beginning)
        for path in (paths if beginnings else ())
        for seen in (os.path.normpath(path), resolve(path))
        for beginning in beginnings
    )


def may_run(rule: Rule, paths: Iterable[str], cwd: str) -> bool:
    """Return True if a rule that denies is for one of these programs or scripts, by its path."""
    program = (rule.argument or "").removesuffix(":*")
    named = rule.kind in ("shell", "bash") and "/" in program and program[-1:] != "/"
    if not named or " " in program:
        return may_run_from(rule, paths, cwd)
    wanted = fold(resolve(os.path.join(cwd, program)))
    return any(fold(resolve(path)) == wanted for path in paths)


def _name_programs(rule: Rule) -> str:
    """Return the folder whose programs a rule is for, if it is one."""
    folder = rule.argument or ""
    is_one = rule.kind in ("shell", "bash") and folder.endswith("/")
    return folder if is_one and (folder == HERE or os.path.isabs(folder)) else ""


def _begins_with(found: "Found", words: tuple[str, ...], *, denies: bool) -> bool:
    if len(words) < 2:
        return False
    if denies:
        from trimtab.permissions.shell.programs.leading import may_begin_with

        return may_begin_with(found.words, words)
    return found.leading[: len(words)] == words


def matches_path(rule: Rule, kind: str, path: str, cwd: str, *, denies: bool = False) -> bool:
    """Return True if a rule covers a path: all of it, or its last components."""
    if _kind(rule, denies=denies) != kind:
        return False
    return rule.argument is None or covers(rule, find_spots(path, cwd, denies=denies), cwd, denies)


def find_spots(path: str, cwd: str, *, denies: bool) -> frozenset[str]:
    """Return where a path leads; for rules that deny, also where it seems to be."""
    seeming = [os.path.normpath(os.path.join(cwd, path))] if denies else []
    return frozenset((resolve(path), *seeming))


def covers(rule: Rule, given: Iterable[str], cwd: str, denies: bool) -> bool:
    """Return True if a rule with an argument covers one of these absolute paths."""
    argument = rule.argument or ""
    if rule.root:
        from trimtab.permissions.exclusions import is_excluded

        return any(is_excluded(path, rule.root, argument) for path in given)
    wanted = os.path.expanduser(argument)
    if os.path.isabs(wanted) and not denies:
        return _allows(rule, os.path.normpath(wanted), given)
    parts = fold(os.path.normpath(wanted)).split(os.sep)
    if os.path.isabs(wanted) or names_place(wanted):
        target = fold(resolve(os.path.join(cwd, wanted)))
        beginning = target.rstrip(os.sep) + os.sep
        return any(
            fold(path) == target or (denies and fold(path).startswith(beginning)) for path in given
        )
    return any(_has_tail(fold(path).split(os.sep), parts, inside=denies) for path in given)


def names_place(wanted: str) -> bool:
    """Return True for a path that counts from the directory in use: `.`, `..`, `../a`."""
    return os.path.normpath(wanted).split(os.sep)[0] in (os.curdir, os.pardir)


def _allows(rule: Rule, wanted: str, given: Iterable[str]) -> bool:
    """Return True if a rule that allows names one of these paths, or a folder above it, in full.

    The rule is taken as it is written: a link put there later leads to nothing that it covers.
    """
    if folder := name_folder(rule):
        return any(covers_below(folder, path) for path in given)
    if rule.kind == "write" and (rule.argument or "").endswith("/"):
        from trimtab.permissions.agent_folders import name_agent_folder, opens

        if folder := name_agent_folder(rule):
            return any(opens(folder, path) for path in given)
        from trimtab.permissions.work_folders import name_work_folder

        if folder := name_work_folder(rule):
            return any(f"{fold(path)}/".startswith(f"{fold(folder)}/") for path in given)
    return any(fold(path) == fold(wanted) for path in given)


def to_globs(rules: Iterable[Rule], cwd: str) -> tuple[str, ...]:
    """Return the files that rules keep from being read, as patterns of ignore files."""
    from trimtab.permissions.exclusions import escape, to_ignored

    globs: list[str] = []
    for rule in rules:
        if _kind(rule, denies=True) != "read" or rule.argument is None:
            continue
        if rule.root:
            globs += to_ignored(rule.argument, rule.root, resolve(cwd))
            continue
        wanted = os.path.normpath(os.path.expanduser(rule.argument))
        if not os.path.isabs(wanted) and not names_place(wanted):
            globs.append(f"**/{escape(wanted)}")
            continue
        path = resolve(os.path.join(cwd, wanted))
        globs.append(f"**{escape(path)}")
        inside = os.path.relpath(path, resolve(cwd))
        if inside.split(os.sep)[0] != os.pardir:
            globs.append("**" if inside == os.curdir else f"/{escape(inside)}")
    return tuple(globs)


def _has_tail(path: list[str], parts: list[str], *, inside: bool) -> bool:
    if path[-len(parts) :] == parts:
        return True
    spots = range(len(path) - len(parts))
    return inside and any(path[spot : spot + len(parts)] == parts for spot in spots)


def matches_address(rule: Rule, url: str, *, denies: bool = False) -> bool:
    if _kind(rule, denies=denies) != "url":
        return False
    from trimtab.permissions.urls import matches_url

    return rule.argument is None or matches_url(rule.argument, url, denies=denies)


def matches_tool(rule: Rule, access: Access, *, denies: bool = False) -> bool:
    """Rules for what is neither shell, path nor address: memory, MCP servers, other tools."""
    if access.kind == "memory":
        return rule.kind == "memory"
    if access.kind == "mcp":
        return _matches_server(rule, access, denies=denies)
    if rule.kind == access.kind:
        return rule.argument in (None, access.target)
    return rule.kind == access.target and rule.argument is None


_OTHER_KINDS = frozenset(("shell", "write", "read", "url", "memory", "custom-tool", *_ALIASES))


def _matches_server(rule: Rule, access: Access, *, denies: bool) -> bool:
    """A server may be called `write`: a rule that lets files be written does not let it do all."""
    server, tool = access.detail.get("serverName", ""), access.detail.get("toolName", "")
    if rule.digest and rule.digest != access.detail.get("toolDigest"):
        return False
    whole = access.target, f"mcp__{server}__{tool}", f"mcp__{server}"
    if rule.argument is None and rule.kind in whole:
        return True
    if rule.kind != server or rule.argument not in (None, tool):
        return False
    meant = rule.kind not in _OTHER_KINDS or (rule.kind == "memory" and rule.argument is not None)
    return denies or meant


def _kind(rule: Rule, *, denies: bool) -> str:
    # To deny one tool must not deny another of the same kind; the processor sees to that.
    return rule.kind if denies and rule.kind != "bash" else _ALIASES.get(rule.kind, rule.kind)
