"""Read-only: whether a call of a known program changes nothing."""

import re
from collections.abc import Sequence

from trimtab.permissions.shell.programs.identify import Name
from trimtab.permissions.shell.programs.options import Program, Reading
from trimtab.permissions.shell.verdict.analysis import Analysis

_LISTING = (
    *("--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged"),
    *("--points-at", "-n"),
)
_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "-"))
_GETTING = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l")
_TO_STDOUT = ("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
_SHOWING = ("show", "list", "ls", "sh", "get", "dev")
_PACKING = (
    *("-x", "-c", "-r", "-u", "-A", "--extract", "--get", "--create", "--append", "--update"),
    *("--delete", "--concatenate", "--remove-files"),
)


def is_read_only(name: Name, table: Program, reading: Reading, into: Analysis) -> bool:
    """By its table, and for a few subcommands of git by what stands in the place of an operand."""
    if name.table == "git config" and not _reads_config(reading):
        into.add_hazards("git config can make git run other programs")
        return False
    if not table.reads or reading.hazards or reading.strange or reading.targets or name.hazards:
        return False
    operands = reading.operands
    several = reading.uncertain or any(operand.several for operand in operands)
    if table.operands >= 0 and (several or len(operands) > table.operands):
        if table.operands == 1:
            into.add_hazards(f"{name.base} writes its second operand", conceals=False)
        return False
    if reading.uncertain and not table.free:
        return False
    first = operands[0].text if operands else ""
    return re.search(table.words, first) is not None and _operands_are_read(name, reading)


def _operands_are_read(name: Name, reading: Reading) -> bool:
    operands = reading.operands
    match name.table:
        case "git branch" | "git tag":
            only_reads = not operands or reading.has(*_LISTING)
        case "git remote":
            only_reads = not operands or operands[0].text == "get-url"
        case "ip":
            only_reads = len(operands) < 2 or operands[1].text in _SHOWING
        case "tar":
            only_reads = reading.has("-t", "--list") and not reading.has(*_PACKING)
        case "unzip":
            only_reads = reading.has("-l", "-Z")
        case "gzip" | "gunzip" | "xz" | "unxz" | "bzip2" | "bunzip2" | "zstd" | "unzstd":
            only_reads = reading.has(*_TO_STDOUT)
        case "pdftotext":
            only_reads = len(operands) == 2 and operands[1].text == "-"
        case "tee":
            only_reads = all(operand.text in _NO_FILES for operand in operands)
        case _:
            only_reads = True
    return only_reads


def _reads_config(reading: Reading) -> bool:
    operands: Sequence[str] = [operand.text for operand in reading.operands]
    if reading.strange or reading.hazards or reading.uncertain:
        return False
    if reading.has(*_GETTING):
        return len(operands) <= 1
    if operands[:1] in (["get"], ["list"]):
        return True
    return len(operands) == 1 and operands[0] not in ("set", "unset", "edit")
