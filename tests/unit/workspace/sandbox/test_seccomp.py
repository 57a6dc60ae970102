"""The filter of system calls, loaded by a process that then tries them."""

import errno
import os
import subprocess
import sys

import pytest

from trimtab.workspace.sandbox import seccomp

TRY = """
import ctypes, sys
from trimtab.workspace.sandbox import landlock, seccomp
program = seccomp.build_fence_filter(refuse_signals=False, refuse_truncation=False)
libc = ctypes.CDLL(None, use_errno=True)
landlock.check(libc.prctl(landlock.NO_NEW_PRIVS, 1, 0, 0, 0))
landlock.install_filter(libc, program)
print(ctypes.get_errno() if libc.syscall(int(sys.argv[1]), -1, -1, -1, -1) < 0 else 0)
"""


@pytest.mark.needs("landlock")
@pytest.mark.parametrize(
    ("calls", "answer"),
    [(seccomp.WATCHES, errno.ENOSYS), ({"quotactl_fd": (443, 443)}, errno.EPERM)],
)
def test_calls_that_reach_beyond_a_command_are_refused(
    calls: dict[str, tuple[int, int]], answer: int
) -> None:
    """Watches told what happens to files of any folder, and used up what a user may have."""
    if not seccomp.is_supported():
        pytest.skip("the numbers of calls are not known for this machine")
    column = seccomp.MACHINES[os.uname().machine][1]
    for numbers in calls.values():
        if numbers[column] == seccomp.NONE:
            continue
        ended = subprocess.run(
            [sys.executable, "-c", TRY, str(numbers[column])],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(ended.stdout) == answer
