"""Builds a seccomp filter against system calls that could escape a sandbox.

The filter is assembled by hand (`struct sock_filter`, eight bytes per instruction), with a jump per
refused call, so that no library is needed to build or load it.
"""

import os
import struct
from collections.abc import Mapping, Sequence

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32
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

NONE = -1
"""Stands for a call that an architecture does not have."""
ATTRIBUTES = {
    "chmod": (90, NONE),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, NONE),
    "fchown": (93, 55),
    "lchown": (94, NONE),
    "fchownat": (260, 54),
    "utime": (132, NONE),
    "utimes": (235, NONE),
    "futimesat": (261, NONE),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Calls that change a file without opening it for writing; Landlock does not check them."""
SHARED_OBJECTS = {
    "shmget": (29, 194),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}
"""Calls that create or remove objects of the kernel that outlive a command."""
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
ON_PROCESSES = {
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "prlimit64": (302, 261),
}
"""Calls whose first argument is a process; 0 is the caller."""
TRUNCATION = {"truncate": (76, 45), "creat": (85, NONE)}
OPEN, OPENAT2, O_WRITING, O_TRUNC = ((2, NONE), (257, 56)), 437, 0b11, 0o1000
"""`open` and `openat`, whose flags are in the second and the third argument."""
SET_PRIORITY, SET_IO_PRIORITY = (141, 140), (251, 30)
"""Their second argument is a process; 0 is the caller."""
FILE_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602, 0x40806685, 0x800C6613)
"""FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY and
FS_IOC_SET_ENCRYPTION_POLICY, the first and the third with their forms for 32 bits: they change a
file that is open for reading."""
MEMORY_FILES = {"memfd_create": (319, 279)}
"""Files that no folder holds, so Landlock lets programs in them be executed."""


def is_supported() -> bool:
    """Return True if this machine's call numbers are known."""
    return os.uname().machine in MACHINES


def build_filter(families: Sequence[int]) -> bytes:
    """Return the filter, which allows sockets of these families only. Raises `KeyError`."""
    return assemble(families, REFUSED, TYPING, ())


def build_fence_filter(*, refuse_signals: bool, refuse_truncation: bool) -> bytes:
    """Return the filter for commands that must change nothing. Raises `KeyError`.

    Kernels that cannot tell to whom a signal is sent refuse all of them, and those that cannot tell
    which file is truncated refuse it unless the file is opened for writing.
    """
    _, column = MACHINES[os.uname().machine]
    refused = {**REFUSED, **ATTRIBUTES, **SHARED_OBJECTS, **MEMORY_FILES}
    if refuse_signals:
        refused |= SIGNALS
    own_only = [
        *(part for call in ON_PROCESSES.values() for part in refuse_others(call[column], FIRST)),
        *refuse_others(SET_PRIORITY[column], SECOND),
        *refuse_others(SET_IO_PRIORITY[column], SECOND),
    ]
    if refuse_truncation:
        refused |= TRUNCATION
        for call, argument in zip(OPEN, (SECOND, THIRD), strict=True):
            if call[column] != NONE:
                # Landlock checks what is opened for writing, and that before it is truncated.
                own_only += when(
                    call[column],
                    instruction(LOAD, argument),
                    instruction(JUMP_SET, O_WRITING, 2, 0),
                    instruction(JUMP_SET, O_TRUNC, 0, 1),
                    refuse(EPERM),
                    instruction(RETURN, ALLOW),
                )
        own_only += when(OPENAT2, refuse(ENOSYS))
    return assemble((NETLINK,), refused, (*TYPING, *FILE_FLAGS), own_only)


def assemble(
    families: Sequence[int],
    refused: Mapping[str, tuple[int, int]],
    requests: Sequence[int],
    more: Sequence[bytes],
) -> bytes:
    """Return the filter; `requests` are the refused ioctl requests."""
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
    for numbers in refused.values():
        if numbers[column] != NONE:
            program += when(numbers[column], refuse(EPERM))
    program += more
    program += when(CLONE[column], *refuse_bits(NAMESPACES))
    program += when(UNSHARE[column], *refuse_bits(NAMESPACES | NEW_TIME))
    program += when(
        IOCTL[column],
        instruction(LOAD, SECOND),
        *(part for request in requests for part in when(request, refuse(EPERM))),
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


def refuse_others(call: int, argument: int) -> tuple[bytes, ...]:
    """Refuse a call for another process than the caller."""
    own = when(0, instruction(RETURN, ALLOW))
    return when(call, instruction(LOAD, argument), *own, refuse(EPERM))


def refuse_bits(bits: int) -> tuple[bytes, ...]:
    """Refuse a call whose first argument has one of the bits, allow it otherwise."""
    return (
        instruction(LOAD, FIRST),
        instruction(JUMP_SET, bits, 0, 1),
        refuse(EPERM),
        instruction(RETURN, ALLOW),
    )
