"""Landlock by system calls: confines the calling thread and its children to a policy for good."""

import ctypes
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from functools import cache

from trimtab.workspace.sandbox.policy import SandboxPolicy, existing

CREATE, ADD, RESTRICT = 444, 445, 446
PATH_BENEATH = 1
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2

READING = 0b1101
"""Execute, read a file, read a directory."""
READ_ONLY = 0b1100
"""Read a file, read a directory."""
UNREAD = 0b101
"""Execute, read a file: removed from a folder with denied contents."""
CAPABILITY_VERSION, CAPABILITIES = 0x20080522, 0b11111011
"""Chown, override access rights, owner, set-id bits, kill, set group and user."""
FILE_ONLY = 0b111 | 1 << 14 | 1 << 15
"""The rights that rules for files may have."""
ALL = 0xFFFF
RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
"""The file rights of each version of the interface, cumulative."""
TRUNCATE_SINCE = 3
SCOPES_SINCE, SCOPES = 6, 0b11
"""No abstract sockets of processes outside, and no signals to them."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd", "shm")


@cache
def find_version() -> int:
    """Return the kernel's Landlock version, 0 for none."""
    try:
        return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(CREATE, None, 0, 1)))
    except (OSError, AttributeError):
        return 0


def restrict(policy: SandboxPolicy, program: bytes) -> None:
    """Confine the calling thread to the policy and a seccomp filter. Raises `OSError`."""
    ruleset = build_ruleset(list(find_rules(policy)), find_version())
    try:
        enter(ruleset, program, CAPABILITIES)
    finally:
        os.close(ruleset)


def find_rules(policy: SandboxPolicy) -> Iterator[tuple[str, int]]:
    for path in readable(policy):
        yield path, READING
    for path in (*existing(policy.all_writable), *(f"/dev/{name}" for name in DEVICES)):
        yield path, ALL & ~UNREAD if holds_denied(path, policy) else ALL


def build_ruleset(
    rules: Sequence[tuple[str, int]], version: int, checked: int | None = None
) -> int:
    """Return the descriptor of a ruleset that allows only these rights on paths. Raises `OSError`.

    Paths that do not exist are left out. `enter` may use the ruleset for many commands. Only the
    rights in `checked` are taken away, by default all that the kernel knows.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    rights = max(value for since, value in RIGHTS.items() if since <= version)
    scopes = SCOPES if version >= SCOPES_SINCE and checked is None else 0
    rights &= ALL if checked is None else checked
    wanted = struct.pack("=QQQ", rights, 0, scopes)[: 24 if scopes else 8]
    ruleset = check(libc.syscall(CREATE, wanted, len(wanted), 0))
    try:
        for path, allowed in rules:
            allow(libc, ruleset, path, rights & allowed)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def enter(ruleset: int, program: bytes, capabilities: int) -> None:
    """Confine the calling thread to a ruleset and a seccomp filter for good. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    drop_capabilities(libc, capabilities)
    enter_ruleset(ruleset)
    install_filter(libc, program)


def enter_ruleset(ruleset: int) -> None:
    """Confine the calling thread to a ruleset for good. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    check(libc.syscall(RESTRICT, ruleset, 0))


def restrict_reading(descriptors: Sequence[int]) -> None:
    """Let the calling thread read below open folders, and nowhere else. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = check(libc.syscall(CREATE, struct.pack("=Q", READ_ONLY), 8, 0))
    try:
        for fd in descriptors:
            add_rule(libc, ruleset, fd, READ_ONLY)
        check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
        check(libc.syscall(RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def holds_denied(folder: str, policy: SandboxPolicy) -> bool:
    """Return True if a folder has denied contents; its other entries are then allowed singly."""
    return any(os.path.realpath(path).startswith(f"{folder}/") for path in policy.denied)


def drop_capabilities(libc: ctypes.CDLL, wanted: int) -> None:
    """Drop root's capabilities except the wanted ones; it could inspect processes outside."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION, 0))
    data = ctypes.create_string_buffer(24)
    check(libc.capget(header, data))
    _, permitted, _, *_ = struct.unpack("=6I", data.raw)
    kept = permitted & wanted
    check(libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)))


def install_filter(libc: ctypes.CDLL, program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    check(libc.prctl(SECCOMP, FILTER, described, 0, 0))


def readable(policy: SandboxPolicy) -> list[str]:
    """List everything except denied paths: Landlock can only allow, not deny."""
    denied = {os.path.realpath(path) for path in policy.denied}
    found, folders = [], ["/"]
    while folders:
        folder = folders.pop()
        if not any(path.startswith(folder.rstrip("/") + "/") for path in denied):
            found.append(folder)
            continue
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        beside = {os.path.join(folder, name) for name in names} - denied
        folders += [path for path in beside if not os.path.islink(path)]
    return found


def allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        add_rule(libc, ruleset, fd, rights)
    finally:
        os.close(fd)


def add_rule(libc: ctypes.CDLL, ruleset: int, fd: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= FILE_ONLY
    check(libc.syscall(ADD, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, fd), 0))


def check(outcome: int) -> int:
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return outcome
