"""Read-only: whether a call of a known program changes nothing."""

import re
from collections.abc import Callable, Sequence

from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.identify import Name
from trimtab.permissions.shell.programs.options import Program, Reading
from trimtab.permissions.shell.verdict.analysis import Analysis

_LISTING = (
    *("--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged"),
    *("--points-at", "-n"),
)
WRITERS = frozenset(
    (
        *("cp", "mv", "ln", "mkdir", "rmdir", "touch", "rm", "unlink", "shred", "chmod", "chown"),
        *("chgrp", "tee", "dd", "truncate", "install", "rsync", "tar", "unzip", "zip", "gzip"),
        *("xz", "bzip2", "zstd", "mkfifo", "mknod", "split", "csplit", "patch", "fallocate"),
        *("setfacl", "chattr", "git clone", "git init", "git worktree", "mktemp", "7z", "scp"),
    )
)
"""Programs whose words with a slash in front are paths: those that change files by name."""
INTERPRETERS = frozenset(
    (
        *("python", "python2", "python3", "pypy3", "node", "ruby", "perl", "php", "lua", "Rscript"),
        *("julia", "tsx", "ts-node"),
    )
)
"""Programs that run the file they are given first."""
_INFORMING = ("--version", "-version", "-V", "version", "--help", "-help", "help")
_RUNNERS = frozenset(
    (
        *("make", "gmake", "just", "task", "rake", "rails", "mix", "gradle", "ant", "mvn", "sbt"),
        *("invoke", "inv", "fab", "nox", "tox", "yarn", "pnpm", "npm", "bun", "deno", "composer"),
        *("bundle", "grunt", "gulp", "scons", "waf", "lerna", "nx", "turbo", "pants", "bazel"),
        *("earthly", "mage", "source", "."),
    )
)
"""Programs that run code of the project, whatever they are asked."""
_HELPING = frozenset(
    (
        *("apt", "aws", "az", "brew", "cargo", "docker", "dotnet", "fly", "flyctl", "gcloud"),
        *("gem", "gh", "glab", "helm", "heroku", "kubectl", "netlify", "npm", "pip", "pip3"),
        *("podman", "rustup", "supabase", "systemctl", "terraform", "tofu", "vercel", "wrangler"),
    )
)
"""Programs whose subcommands explain themselves and run nothing for that."""
_EXECUTING = frozenset(("run", "exec", "start", "test", "x", "--"))
_HARMLESS_KEYS = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)"
    r"|fetch\.prune|merge\.(?:conflictstyle|ff)|rebase\.auto(?:stash|squash)|rerere\.enabled"
    r"|core\.(?:autocrlf|eol|filemode|ignorecase|longpaths|quotepath|safecrlf|symlinks)"
    r"|(?:commit|tag)\.gpgsign|(?:color|column|advice)\.[\w.]+|log\.(?:date|decorate)"
    r"|diff\.(?:algorithm|renames|context)|status\.\w+",
    re.IGNORECASE,
)
_PRINTING = frozenset(("grep", "egrep", "fgrep"))
"""Programs that only print, so that one of their options that is not known is worth trying."""
_LOOKING = frozenset(("ls", "stat", "du", "df", "readlink", "realpath", "cd", "pushd", "tree"))
"""Programs that read nothing of the files they are given but their names and places."""
_FOLLOWING = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), re.compile(r"-\w*R\w*|--de(?!v)\S*")),
    **dict.fromkeys(("rg", "tar"), re.compile(r"-\w*[Lh]\w*|--follow|--de\S*")),
    **dict.fromkeys(("sort", "wc", "du"), re.compile(r"--f\S*")),
    **dict.fromkeys(
        ("md5sum", "b2sum", "cksum", *(f"sha{bits}sum" for bits in (1, 224, 256, 384, 512))),
        re.compile(r"-\w*c\w*|--c\S*"),
    ),
    "file": re.compile(r"-\w*f.*|--f\S*"),
    "jq": re.compile(r".*\b(?:import|include)\b.*|-\w*f.*|--from\S*", re.DOTALL),
    "yq": re.compile(r".*\b(?:import|include|(?:load\w*|eval)\s*\().*|--from\S*", re.DOTALL),
    "ag": re.compile(r"-\w*f\w*|--fo\S*"),
    "diff": re.compile(r"-\w*r\w*|--rec\S*"),
    "objdump": re.compile(r"-\w*S\w*|--so\S*"),
    "xmllint": re.compile(r"--(?:va|sc)\S*"),
}
"""Words by which programs read what links lead to that they find, or what other files name."""
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
        if not _sets_harmless_key(reading):
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


def never_writes(name: Name, table: Program, reading: Reading) -> bool:
    """Return True for a program that reads the files it is given, but for what is a hazard."""
    plain = table.reads and table.operands < 0 and not (table.partial or table.words)
    return plain and not reading.hazards and name.program not in (*WRITERS, "git")


def seems_read_only(name: Name, table: Program, reading: Reading) -> bool:
    """Return True for a call that is worth trying where it can do no harm."""
    if name.program in _PRINTING and not (reading.hazards or reading.targets):
        return True
    if not table.tries or reading.hazards or reading.targets or reading.uncertain:
        return False
    if reading.has("-w", "-u"):  # of `go env`: it writes settings
        return False
    words = [operand.text for operand in reading.operands[:2]]
    return any(re.search(table.tries, given) for given in ("".join(words[:1]), " ".join(words)))


def informs(table: Program | None, arguments: Sequence[Argument]) -> bool:
    """Return True for a call by which a program just says something about itself."""
    if table is None or not table.informs or len(arguments) != 1:
        return False
    return re.fullmatch(table.informs, arguments[0].text) is not None


def may_inform(name: Name, arguments: Sequence[Argument]) -> bool:
    """Return True for a call by which a program should only print its version or its help."""
    if not arguments or not all(argument.known and not argument.many for argument in arguments):
        return False
    words = [argument.text for argument in arguments]
    if len(words) == 1:
        is_file = name.program in INTERPRETERS and words[0][0] != "-"
        return words[0] in _INFORMING and name.program not in _RUNNERS and not is_file
    if words[-1] != "--help" or name.program not in _HELPING:
        return False
    return not (name.hazards or _EXECUTING.intersection(words))


def follows_links(name: Name, arguments: Sequence[Argument]) -> bool:
    """Return True if a program reads what links lead to, or what files name."""
    option = _FOLLOWING.get(name.program)
    return option is not None and any(option.fullmatch(a.text) for a in arguments)


def compares_folders(name: Name, reading: Reading, is_folder: Callable[[str], bool]) -> bool:
    """Return True for `diff FOLDER …`: it reads the files in there, and what links lead to."""
    given = [*reading.operands, *reading.values.get("--from-file", ())]
    given += reading.values.get("--to-file", ())
    return name.program == "diff" and any(word is None or is_folder(word.text) for word in given)


def shows_names(name: Name, reading: Reading) -> bool:
    """Return True for a program that reads no file but its own, only names and places."""
    if name.program != "git":
        return name.program in _LOOKING
    # Git compares any two files.
    return name.subcommand != "diff" or len(reading.operands) <= 1


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


def _sets_harmless_key(reading: Reading) -> bool:
    """Return True if `git config` sets a key by which git starts nothing."""
    if reading.strange or reading.hazards or reading.uncertain or len(reading.operands) != 2:
        return False
    key, value = reading.operands
    return key.known and not value.several and _HARMLESS_KEYS.fullmatch(key.text) is not None


def _reads_config(reading: Reading) -> bool:
    operands: Sequence[str] = [operand.text for operand in reading.operands]
    if reading.strange or reading.hazards or reading.uncertain:
        return False
    if reading.has(*_GETTING):
        return len(operands) <= 1
    if operands[:1] in (["get"], ["list"]):
        return True
    return len(operands) == 1 and operands[0] not in ("set", "unset", "edit")
