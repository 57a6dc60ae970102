"""Shells that are not bash: whether they read a text as bash does."""

import re

from trimtab.permissions.shell.grammar.arithmetic import runs_if_evaluated

_POSIX = frozenset(("sh", "dash", "ash", "ksh", "mksh"))
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_QUOTED = re.compile(r"(?<!\$)\"(?:\\.|[^\"\\$`])*\"|\\.|(?<!\$)'[^']*'", re.DOTALL)
_NESTED = re.compile(r"\"[^\"]*(?:\$[({]|`)")
_PLAIN = re.compile(r"[\w ./:@%+,\-'\"|;&\n]*")
_BASH_ONLY = re.compile(
    r"&>|>&[^\d\s-]|\|&|[<>]\(|<<<|\[\[|\(\(|\$['\"\[]|\{[^{}\s]*(,|\.\.)|;;?&|\+=|=\("
    r"|\w\[[^\[\]]*\]=|\]\]=|\$\{\w*[/^,@\[]|\$\{!|[;&]\||&!"
    r"|(^|[;&|\s])(-\s|function\s|select\s|coproc\s|time\s|let\s)"
    r"|(^|[;&|\s])(export|readonly|local)\s[^;&|\n]*=[^\s\"]*[$`]"  # which it splits into words
    r"|[^\s;&|(]\s+\w+\+?=(?:[^\s;&|]*:)?~"  # in a word that is no assignment
)
"""Syntax that a plain shell does not know, or reads differently."""
_ZSH_OWN = re.compile(
    r"[^\s;&|($]\(|\$\(\(|\(\)|\(\("  # qualifiers of patterns, which can run code
    r"|(^|[\s;&|(])[=#^]|!"  # =command, comments, history
    r"|\$[=~^+:#]|\$\{[=~^+(:#]|\$\w+[:\[(]|\$\{\w+[:\[/^,@!]|~[\[+-]"
    r"|>[!|]|>&[^\d-]|&[!|]|\|&|[<>]\(|<<<|\[\[|\$['\"\[]|;;?[&|]|\+=|=\(|`"
    r"|-(?:eq|ne|lt|le|gt|ge)\b|\b(?:f?path|cdpath|manpath|module_path|mailpath|\w+_functions)="
    r"|(^|[;&|\s(])(?:exit|return|shift|break|continue)\s+[^\s;\d]"
    r"|(^|[;&|\s(])(-\s|function\s|select\s|coproc\s|time\s|let\s|repeat\s|foreach\s|no(glob|correct)\s)"
)
"""Syntax of zsh that bash does not know, or reads differently."""


def differs(text: str, shell: str) -> str | None:
    """Why a shell may read a text otherwise than bash does; such a text is not relied on."""
    name = shell.lower()
    if name in ("bash", "rbash"):
        return None
    if _is_common(text, name):
        return None
    return f"{name} may read some of it in its own way"


def _is_common(text: str, name: str) -> bool:
    if _CONTROL.search(text):
        return False
    shown = _without_quotes(text)
    if name in _POSIX:
        return not _BASH_ONLY.search(shown)
    if name == "zsh":
        return not (_ZSH_OWN.search(shown) or runs_if_evaluated(text))
    return _PLAIN.fullmatch(text) is not None and not _BASH_ONLY.search(text)


def _without_quotes(text: str) -> str:
    """The text without what is quoted and plain, if it is certain where quotes begin and end."""
    return text if _NESTED.search(text) else _QUOTED.sub("_", text)
