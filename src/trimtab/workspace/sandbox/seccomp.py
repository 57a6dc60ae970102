"""Builds a seccomp filter against system calls that could escape a sandbox.

The filter is assembled by hand (`struct sock_filter`, eight bytes per instruction), with a jump per
refused call, so that no library is needed to build or load it.
"""

import os
import struct
from collections.abc import Sequence

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Offsets in `struct seccomp_data`; of an argument, the lower half is tested."""

X32 = 0x40000000
NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
NEW_TIME = 0x80
TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX inject input into the terminal of whoever started the command."""
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's constant for an architecture, and the column of its call numbers."""

REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
}
CLONE, CLONE3, UNSHARE, IOCTL, SOCKET = (56, 220), (435, 435), (272, 97), (16, 29), (41, 198)


def is_supported() -> bool:
    """Return True if this machine's call numbers are known."""
    return os.uname().machine in MACHINES


def build_filter(families: Sequence[int]) -> bytes:
    """Return the filter, which allows sockets of these families only. Raises `KeyError`."""
    architecture, column = MACHINES[os.uname().machine]
    program = [
        instruction(LOAD, ARCHITECTURE),
        instruction(JUMP_EQUAL, architecture, 1, 0),
        refuse(ENOSYS),  # calls of another architecture, which have other numbers
        instruction(LOAD, NUMBER),
        instruction(JUMP_GREATER_EQUAL, X32, 0, 1),
        refuse(ENOSYS),
        # Its arguments are in memory, which a filter cannot read; libraries fall back to clone.
        *when(CLONE3[column], refuse(ENOSYS)),
    ]
    for numbers in REFUSED.values():
        program += when(numbers[column], refuse(EPERM))
    program += when(CLONE[column], *refuse_bits(NAMESPACES))
    program += when(UNSHARE[column], *refuse_bits(NAMESPACES | NEW_TIME))
    program += when(
        IOCTL[column],
        instruction(LOAD, SECOND),
        *(part for request in TYPING for part in when(request, refuse(EPERM))),
        instruction(RETURN, ALLOW),
    )
    program += when(
        SOCKET[column],
        instruction(LOAD, FIRST),
        *(part for family in families for part in when(family, instruction(RETURN, ALLOW))),
        refuse(EAFNOSUPPORT),
    )
    program.append(instruction(RETURN, ALLOW))
    return b"".join(program)


def instruction(code: int, value: int, met: int = 0, unmet: int = 0) -> bytes:
    return struct.pack("=HBBI", code, met, unmet, value)


def refuse(number: int) -> bytes:
    return instruction(RETURN, ERRNO | number)


def when(value: int, *then: bytes) -> tuple[bytes, ...]:
    """Execute the following instructions, which must return, if the loaded word is the value."""
    return instruction(JUMP_EQUAL, value, 0, len(then)), *then


def refuse_bits(bits: int) -> tuple[bytes, ...]:
    """Refuse a call whose first argument has one of the bits, allow it otherwise."""
    return (
        instruction(LOAD, FIRST),
        instruction(JUMP_SET, bits, 0, 1),
        refuse(EPERM),
        instruction(RETURN, ALLOW),
    )
