"""A profile for `sandbox-exec` of macOS that makes it a fence."""

import os
from collections.abc import Sequence

from trimtab.workspace.sandbox.fence_policy import FencePolicy, is_below

PROGRAM = "/usr/bin/sandbox-exec"
SYSTEM = (
    *("/System", "/Library", "/usr", "/bin", "/sbin", "/private/etc", "/private/var/db"),
    *("/private/var/select", "/dev", "/Applications/Xcode.app", "/opt/homebrew"),
)
PROGRAMS = ("/System", "/Library", "/usr", "/bin", "/sbin", "/Applications/Xcode.app")
UNREADABLE = (
    *("/Library/Keychains", "/private/etc/master.passwd", "/private/etc/sudoers"),
    *("/private/var/db/dslocal", "/private/var/db/sudo", "/private/var/db/TCC"),
)
"""Parts of the system that hold secrets, which root may read."""
DEVICES_OF_OTHERS = r'(deny file-read* (regex #"^/dev/(r?disk|tty|pty|ptmx|bpf|cu)"))'
"""Disks hold denied files, and terminals belong to people."""
BASE = """(version 1)
(deny default)
(import "system.sb")
(allow process-fork)
(allow sysctl-read)
(allow signal (target same-sandbox))
(allow file-read-metadata)
(deny network*)"""


def build_profile(policy: FencePolicy, temp: str, terminals: Sequence[str]) -> str:
    """Return the profile. A later rule wins over an earlier one."""
    readable = ("/",) if "/" in policy.readable else (*SYSTEM, *policy.readable, *policy.programs)
    lines = [
        BASE,
        allow("file-read*", readable),
        rule("deny", "file-read*", UNREADABLE),
        DEVICES_OF_OTHERS,
        allow("process-exec", (*PROGRAMS, *policy.programs)),
    ]
    if policy.untrusted:
        lines.append(rule("deny", "process-exec", policy.untrusted))
        # Programs of the system in a workspace that holds all of it (`/`).
        above = [path for path in PROGRAMS if any(is_below(path, top) for top in policy.untrusted)]
        lines += [allow("process-exec", above)] if above else []
    lines.append(allow("file-read* file-write*", (os.path.realpath(temp),)))
    devices = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", *terminals)
    lines.append(f"(allow file-read* file-write* {' '.join(map(literal, devices))})")
    if policy.denied:
        lines.append(rule("deny", "file-read* file-write*", policy.denied))
    return "\n".join(lines)


def allow(operations: str, paths: Sequence[str]) -> str:
    return rule("allow", operations, paths)


def rule(action: str, operations: str, paths: Sequence[str]) -> str:
    return f"({action} {operations} {' '.join(f'(subpath {quote(path)})' for path in paths)})"


def literal(path: str) -> str:
    return f"(literal {quote(path)})"


def quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
