"""Builds a seccomp filter against system calls that could escape a sandbox.

The filter is assembled by hand (`struct sock_filter`, eight bytes per instruction), so that no
library is needed to build or load it.
"""

import os
import struct
from collections.abc import Mapping, Sequence

LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET = 0x05, 0x15, 0x35, 0x45
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT = 1, 38, 93, 97
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32
UPPER_HALF = 4
"""Offsets in `struct seccomp_data`; of an argument, the lower half is tested."""

X32 = 0x40000000
NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
NEW_TIME = 0x80
TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX inject input into the terminal of whoever started the command."""
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
ROUTES, SOCKETS = 0, 4
"""Protocols of netlink."""
STREAM, PACKETS, TYPE = 1, 5, 0xF
"""The types of sockets whose pairs send to each other only, and the bits that hold the type."""

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
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
}
CLONE, CLONE3, UNSHARE, IOCTL, SOCKET = (56, 220), (435, 435), (272, 97), (16, 29), (41, 198)
SOCKET_PAIR = (53, 199)

Checks = dict[int, Sequence[bytes]]
"""The instructions for calls by their number; they return an answer."""
FEW = 4
"""The number of calls that are compared one by one."""
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
    "shmat": (30, 196),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
}
"""Calls for objects of the kernel that outlive a command, and that other programs use."""
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
}
"""Calls whose first argument is a process; 0 is the caller."""
TRUNCATION = {"truncate": (76, 45), "creat": (85, NONE)}
OPEN, OPENAT2, O_WRITING, O_TRUNC = ((2, NONE), (257, 56)), 437, 0b11, 0o1000
"""`open` and `openat`, whose flags are in the second and the third argument."""
SET_PRIORITY, SET_IO_PRIORITY = (141, 140), (251, 30)
"""Their second argument is a process or a group; 0 is the caller's, if the first is not a user."""
PRIORITY_OF_USER, IO_PRIORITY_OF_USER = 2, 3
SET_LIMIT, PROCESS_LIMIT, TAG_LIMIT = (160, 164), (302, 261), 15
"""The time-out of real-time tasks tells a command's processes from others (process_tracking)."""
CONTROL_FILE = (72, 25)
FILE_CONTROLS = (8, 10, 15, 1024, 1026, 1036, 1040)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX have signals sent to any process; F_SETLEASE, F_NOTIFY,
F_SET_RW_HINT and F_SETDELEG act on other users of a file."""
REQUEST_TYPE, REQUEST_TYPES = 0xFF00, (0x5400, 0xB700, 0xFF00)
"""The bits of an ioctl request for its type; those for terminals, namespaces and processes."""
FILE_REQUESTS = (
    *(0x2, 0xC020660B, 0x80086601, 0x80046601, 0x801C581F, 0x80087601, 0x80047601),
    *(0xC0046686, 0xC0286687, 0x81009431, 0x80111500),
)
"""FIGETBSZ, FS_IOC_FIEMAP, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_GETVERSION, those for verity,
the label and the identity: they read. Others change a file that is open for reading, or a folder's
entries past the checks of Landlock."""
WATCHES = {
    "inotify_init": (253, NONE),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
"""Calls by which one learns what happens to files anywhere, and uses up what a user may watch."""
MEMORY_FILES = {"memfd_create": (319, 279), "memfd_secret": (447, 447)}
"""Files that no folder holds, so Landlock lets programs in them be executed."""


def is_supported() -> bool:
    """Return True if this machine's call numbers are known."""
    return os.uname().machine in MACHINES


def build_filter(families: Sequence[int]) -> bytes:
    """Return the filter, which allows sockets of these families only. Raises `KeyError`."""
    return assemble(families, REFUSED, refuse_words(SECOND, TYPING), {})


def build_fence_filter(*, refuse_signals: bool, refuse_truncation: bool) -> bytes:
    """Return the filter for commands that must change nothing. Raises `KeyError`.

    Kernels that cannot tell to whom a signal is sent refuse all of them, and those that cannot tell
    which file is truncated refuse it unless the file is opened for writing.
    """
    _, column = MACHINES[os.uname().machine]
    refused = {**REFUSED, **ATTRIBUTES, **SHARED_OBJECTS, **MEMORY_FILES}
    if refuse_signals:
        refused |= SIGNALS
    checks: Checks = {numbers[column]: refuse_others(FIRST) for numbers in ON_PROCESSES.values()}
    # Programs that follow files look at them again and again instead.
    checks |= {numbers[column]: (refuse(ENOSYS),) for numbers in WATCHES.values()}
    checks |= {
        SET_PRIORITY[column]: refuse_user(PRIORITY_OF_USER),
        SET_IO_PRIORITY[column]: refuse_user(IO_PRIORITY_OF_USER),
        SET_LIMIT[column]: refuse_words(FIRST, (TAG_LIMIT,)),
        PROCESS_LIMIT[column]: keep_tag(),
        CONTROL_FILE[column]: refuse_words(SECOND, FILE_CONTROLS),
    }
    if refuse_truncation:
        refused |= TRUNCATION
        for call, argument in zip(OPEN, (SECOND, THIRD), strict=True):
            # Landlock checks what is opened for writing, and that before it is truncated.
            checks[call[column]] = (
                instruction(LOAD, argument),
                instruction(JUMP_SET, O_WRITING, 2, 0),
                instruction(JUMP_SET, O_TRUNC, 0, 1),
                refuse(EPERM),
                instruction(RETURN, ALLOW),
            )
        checks[OPENAT2] = (refuse(ENOSYS),)
    return assemble((NETLINK,), refused, allow_reading_requests(), checks)


def assemble(
    families: Sequence[int],
    refused: Mapping[str, tuple[int, int]],
    requests: Sequence[bytes],
    more: Checks,
) -> bytes:
    """Return the filter; `requests` are the instructions for ioctl."""
    architecture, column = MACHINES[os.uname().machine]
    checks = {
        # Its arguments are in memory, which a filter cannot read; libraries fall back to clone.
        CLONE3[column]: (refuse(ENOSYS),),
        CLONE[column]: refuse_bits(NAMESPACES),
        UNSHARE[column]: refuse_bits(NAMESPACES | NEW_TIME),
        IOCTL[column]: requests,
        SOCKET[column]: (
            instruction(LOAD, FIRST),
            # With sockets of files, a command has a network of its own.
            *(limit_netlink() if NETLINK in families and UNIX not in families else ()),
            *(part for family in families for part in allow_word(family)),
            refuse(EAFNOSUPPORT),
        ),
        **more,
        **{numbers[column]: (refuse(EPERM),) for numbers in refused.values()},
    }
    if UNIX not in families:
        checks[SOCKET_PAIR[column]] = allow_connected_pairs()
    checks.pop(NONE, None)
    program = [
        instruction(LOAD, ARCHITECTURE),
        instruction(JUMP_EQUAL, architecture, 1, 0),
        refuse(ENOSYS),  # calls of another architecture, which have other numbers
        instruction(LOAD, NUMBER),
        instruction(JUMP_GREATER_EQUAL, X32, 0, 1),
        refuse(ENOSYS),
        *search(sorted(checks.items())),
    ]
    return b"".join(program)


def search(checks: Sequence[tuple[int, Sequence[bytes]]]) -> Sequence[bytes]:
    """Find the check of a call, and allow a call without one.

    It halves the checks: the kernel tries a filter on every call when it is loaded, and to compare
    each with all of them takes it half a millisecond.
    """
    if len(checks) <= FEW:
        compared = (part for number, check in checks for part in when(number, *check))
        return *compared, instruction(RETURN, ALLOW)
    middle = len(checks) // 2
    lower, upper = search(checks[:middle]), search(checks[middle:])
    return (
        instruction(JUMP_GREATER_EQUAL, checks[middle][0], 0, 1),
        instruction(JUMP, len(lower)),  # farther than a comparison can
        *lower,
        *upper,
    )


def instruction(code: int, value: int, met: int = 0, unmet: int = 0) -> bytes:
    return struct.pack("=HBBI", code, met, unmet, value)


def refuse(number: int) -> bytes:
    return instruction(RETURN, ERRNO | number)


def when(value: int, *then: bytes) -> tuple[bytes, ...]:
    """Execute the following instructions, which must return, if the loaded word is the value."""
    return instruction(JUMP_EQUAL, value, 0, len(then)), *then


def allow_word(value: int) -> tuple[bytes, ...]:
    return when(value, instruction(RETURN, ALLOW))


def refuse_words(argument: int, values: Sequence[int]) -> tuple[bytes, ...]:
    """Refuse a call whose argument is one of the values, allow it otherwise."""
    return (
        instruction(LOAD, argument),
        *(part for value in values for part in when(value, refuse(EPERM))),
        instruction(RETURN, ALLOW),
    )


def allow_reading_requests() -> tuple[bytes, ...]:
    """Allow ioctl requests that change nothing but a command's own terminal."""
    return (
        instruction(LOAD, SECOND),
        *(part for value in TYPING for part in when(value, refuse(EPERM))),
        *(part for value in FILE_REQUESTS for part in allow_word(value)),
        instruction(AND, REQUEST_TYPE),
        *(part for value in REQUEST_TYPES for part in allow_word(value)),
        refuse(EPERM),
    )


def limit_netlink() -> tuple[bytes, ...]:
    """Allow netlink sockets that ask about the network; others reach processes, too."""
    allowed = (*allow_word(ROUTES), *allow_word(SOCKETS))
    return when(NETLINK, instruction(LOAD, THIRD), *allowed, refuse(EPROTONOSUPPORT))


def allow_connected_pairs() -> tuple[bytes, ...]:
    """Allow pairs of sockets that reach no other socket; datagrams may have any address."""
    return (
        instruction(LOAD, FIRST),
        instruction(JUMP_EQUAL, UNIX, 1, 0),
        refuse(EAFNOSUPPORT),
        instruction(LOAD, SECOND),
        instruction(AND, TYPE),
        *allow_word(STREAM),
        *allow_word(PACKETS),
        refuse(EPERM),
    )


def keep_tag() -> tuple[bytes, ...]:
    """Allow a process to read and lower its own limits, but for the one that is its tag."""
    return (
        instruction(LOAD, FIRST),
        instruction(JUMP_EQUAL, 0, 1, 0),
        refuse(EPERM),
        instruction(LOAD, SECOND),
        instruction(JUMP_EQUAL, TAG_LIMIT, 1, 0),
        instruction(RETURN, ALLOW),
        # Without new limits, at no address, the call only reads.
        instruction(LOAD, THIRD),
        instruction(JUMP_EQUAL, 0, 1, 0),
        refuse(EPERM),
        instruction(LOAD, THIRD + UPPER_HALF),
        *allow_word(0),
        refuse(EPERM),
    )


def refuse_user(user: int) -> tuple[bytes, ...]:
    """Refuse a call for other processes than the caller and its group; `user` is for a user's."""
    return (
        instruction(LOAD, FIRST),
        *when(user, refuse(EPERM)),
        instruction(LOAD, SECOND),
        *allow_word(0),
        refuse(EPERM),
    )


def refuse_others(argument: int) -> tuple[bytes, ...]:
    """Refuse a call for another process than the caller."""
    return instruction(LOAD, argument), *allow_word(0), refuse(EPERM)


def refuse_bits(bits: int) -> tuple[bytes, ...]:
    """Refuse a call whose first argument has one of the bits, allow it otherwise."""
    return (
        instruction(LOAD, FIRST),
        instruction(JUMP_SET, bits, 0, 1),
        refuse(EPERM),
        instruction(RETURN, ALLOW),
    )
