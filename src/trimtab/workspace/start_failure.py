"""Says why a program could not be started, in a sentence that ends with what to do."""

import errno
import os
from collections.abc import Sequence

NO_ROOM = "the system has no room for another process; end some programs"
REASONS = {
    errno.EACCES: "{program} is not an executable file; check the path and its permissions",
    errno.ENOEXEC: "{program} is not a program for this machine; install one that is",
    errno.E2BIG: "the arguments or the environment are too long; make them shorter",
    errno.EAGAIN: NO_ROOM,
    errno.EMFILE: NO_ROOM,
    errno.ENFILE: NO_ROOM,
    errno.ENOMEM: NO_ROOM,
}


def explain(error: OSError, argv: Sequence[str], cwd: str) -> OSError:
    """Return an error of the same kind whose `strerror` is a sentence without its full stop."""
    program = argv[0] if argv else ""
    reason = find_problem_of_folder(error, cwd) or find_problem_of_program(error, program)
    return OSError(error.errno, reason, error.filename)


def find_problem_of_folder(error: OSError, cwd: str) -> str:
    if error.filename != cwd:
        return ""
    if not os.path.exists(cwd):
        return f"no such file or directory: {cwd}; make it again or work in another folder"
    if not os.path.isdir(cwd):
        return f"not a directory: {cwd}; work in another folder"
    return f"{cwd} may not be entered; change its permissions or work in another folder"


def find_problem_of_program(error: OSError, program: str) -> str:
    if not program:
        return "no program is named; correct the command"
    if error.errno == errno.ENOENT:
        return describe_missing(program)
    other = f"{program} failed to start ({error.strerror or error}); check where it is installed"
    return REASONS.get(error.errno or 0, other).replace("{program}", program)


def describe_missing(program: str) -> str:
    if os.sep not in program:
        return f"{program} is not installed; install it or add its folder to PATH"
    if os.path.lexists(program):
        return f"{program} needs an interpreter that is not installed; see its first line"
    return f"no such program: {program}; check the path"
