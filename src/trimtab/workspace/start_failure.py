"""Explains why a program could not be started, and what to do about it."""

import errno
import os
from collections.abc import Sequence

OUT_OF_RESOURCES = "the system has no room for another process; end some programs"
REASONS = {
    errno.EACCES: "{program} is not an executable file; check the path and its permissions",
    errno.ENOEXEC: "{program} is not a program for this machine; install one that is",
    errno.E2BIG: "the arguments or the environment are too long; make them shorter",
    errno.EAGAIN: OUT_OF_RESOURCES,
    errno.EMFILE: OUT_OF_RESOURCES,
    errno.ENFILE: OUT_OF_RESOURCES,
    errno.ENOMEM: OUT_OF_RESOURCES,
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
    return f"permission denied: {cwd}; change its permissions or work in another folder"


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
