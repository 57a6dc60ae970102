"""Destruction: what cannot be undone and is asked about whatever else is allowed."""

import re
from collections.abc import Callable, Sequence

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.identify import Name
from trimtab.permissions.shell.programs.options import Program, find_program, read_options

_RM = Program(
    flags="dfiIrRvxPW", long="--force --interactive? --one-file-system --no-preserve-root "
    "--preserve-root? --recursive --dir --verbose --help --version"
)  # fmt: skip
_CLEAN = Program(flags="dfinqxX", valued="e", long="--force --dry-run --interactive --quiet")
_RESET = Program(flags="pqN", long="--hard --soft --mixed --merge --keep --quiet --patch")
_BRANCH = Program(flags="dDmMcCftuavrlq", long="--delete --force --move --copy --list --all")
_REVISION = re.compile(r"(?:HEAD|@|ORIG_HEAD)[~^@{].*|[0-9a-f]{7,40}|origin/.*|.*[~^]\d*|.*@\{.*")
RECURSIVE = "it deletes recursively"
FOUND = "it deletes what find finds by name"
REWRITES = "it rewrites history"
LOSES_CHANGES = "it throws away changes or commits"
CLEANS = "it deletes files that git does not know"
DROPS_BRANCH = "it deletes or moves a branch whether merged or not"
DROPS_STASH = "it throws away stashed changes"
REVERSIBLE = frozenset(
    (RECURSIVE, FOUND, REWRITES, LOSES_CHANGES, CLEANS, DROPS_BRANCH, DROPS_STASH)
)
"""Reasons that end with this machine's files, so that a copy of them brings everything back."""
_DISK_TOOLS = re.compile(r"mkfs(\..*)?|wipefs|fdisk|sfdisk|parted|shred|blkdiscard|mkswap")


def find_destruction(name: Name, arguments: Sequence[Argument]) -> list[str]:
    """Why a call would destroy something, as parts of sentences."""
    if name.program == "rm":
        return [RECURSIVE] if _is_recursive(arguments) else []
    if name.program == "rsync" and any(a.text.startswith("--del") for a in arguments):
        return ["rsync deletes what the source does not have"]
    to_device = name.program == "dd" and any(a.text.startswith("of=/dev/") for a in arguments)
    if to_device or _DISK_TOOLS.fullmatch(name.program):
        return [f"{name.program} destroys data for good"]
    if name.program == "git":
        check = _GIT.get(name.subcommand)
        reason = check(arguments[name.skipped :]) if check else None
        return [reason] if reason else []
    if name.program == "gh" and name.base in ("gh repo delete", "gh release delete"):
        return [f"{name.base} deletes on the server"]
    return []


def _is_recursive(arguments: Sequence[Argument]) -> bool:
    if any(a.text[:1] == "-" and UNKNOWN in a.text for a in arguments):
        return True  # some options, and nobody knows which
    return read_options(_RM, arguments).has("-r", "-R", "--recursive")


def _check_rebase(arguments: Sequence[Argument]) -> str | None:
    stops = ("--abort", "--quit", "--show-current-patch", "--edit-todo")
    return None if any(argument.text in stops for argument in arguments) else REWRITES


def _rewrite_all(_arguments: Sequence[Argument]) -> str | None:
    return "it rewrites history for good"


def _check_push(arguments: Sequence[Argument]) -> str | None:
    table = find_program("git push")
    assert table is not None
    reading = read_options(table, arguments)
    if reading.has("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror"):
        return "it forces a push"
    if any(operand.text[:1] == "+" for operand in reading.operands):
        return "it forces a push"
    deletes = reading.has("-d", "--delete", "--prune")
    if deletes or any(operand.text[:1] == ":" for operand in reading.operands):
        return "it deletes branches on the server"
    return None


def _check_commit(arguments: Sequence[Argument]) -> str | None:
    table = find_program("git commit")
    assert table is not None
    return REWRITES if read_options(table, arguments).has("--amend") else None


def _check_reset(arguments: Sequence[Argument]) -> str | None:
    reading = read_options(_RESET, arguments)
    if reading.has("--hard", "--merge", "--keep"):
        return LOSES_CHANGES
    first = reading.operands[0].text if reading.operands else ""
    return REWRITES if _REVISION.fullmatch(first) else None


def _check_clean(arguments: Sequence[Argument]) -> str | None:
    reading = read_options(_CLEAN, arguments)
    dry = reading.has("-n", "--dry-run")
    return None if dry else CLEANS


def _check_branch(arguments: Sequence[Argument]) -> str | None:
    reading = read_options(_BRANCH, arguments)
    forced = reading.has("-f", "--force")
    if reading.has("-D") or (forced and (reading.has("-d", "--delete") or reading.operands)):
        return DROPS_BRANCH
    return None


def _check_worktree(arguments: Sequence[Argument]) -> str | None:
    words = [argument.text for argument in arguments]
    forced = any(re.fullmatch(r"-f+|--f(o(r(ce?)?)?)?", word) for word in words)
    return "it deletes a worktree with its changes" if words[:1] == ["remove"] and forced else None


def _check_reflog(arguments: Sequence[Argument]) -> str | None:
    dropped = _find_first(arguments) in ("expire", "delete", "drop")
    return "it throws away what git keeps for recovery" if dropped else None


def _check_stash(arguments: Sequence[Argument]) -> str | None:
    return DROPS_STASH if _find_first(arguments) in ("drop", "clear") else None


def _find_first(arguments: Sequence[Argument]) -> str:
    return next((a.text for a in arguments if a.text[:1] != "-"), "")


def _check_gc(arguments: Sequence[Argument]) -> str | None:
    pruned = any(a.text.startswith("--prune") for a in arguments)
    return "it throws away what git keeps for recovery" if pruned else None


def _check_prune(arguments: Sequence[Argument]) -> str | None:
    dry = any(argument.text in ("-n", "--dry-run") for argument in arguments)
    return None if dry else "it throws away what git keeps for recovery"


def _check_update_ref(arguments: Sequence[Argument]) -> str | None:
    return "it moves or deletes a reference" if arguments else None


_GIT: dict[str, Callable[[Sequence[Argument]], str | None]] = {
    "rebase": _check_rebase,
    "filter-branch": _rewrite_all,
    "filter-repo": _rewrite_all,
    "replace": _rewrite_all,
    "push": _check_push,
    "commit": _check_commit,
    "reset": _check_reset,
    "clean": _check_clean,
    "branch": _check_branch,
    "reflog": _check_reflog,
    "stash": _check_stash,
    "gc": _check_gc,
    "prune": _check_prune,
    "update-ref": _check_update_ref,
    "worktree": _check_worktree,
}
