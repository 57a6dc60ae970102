"""The policy of the fence: what a command that nobody approved may read and execute."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from trimtab.workspace.sandbox.policy import find_git

PROGRAMS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib"),
    *("/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/games", "/usr/share"),
    *("/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/lib64", "/opt"),
    *("/usr/local/libexec", "/usr/local/share", "/usr/local/go", "/usr/local/cargo"),
    *("/usr/local/rustup", "/nix/store", "/snap", "/run/current-system", "/gnu/store"),
    *("/home/linuxbrew/.linuxbrew", "/opt/homebrew", "/usr/local/Cellar", "/usr/local/opt"),
)
"""Directories of the system from which programs are executed."""
READABLE = (
    *("/usr", "/proc", "/sys", "/run/utmp", "/run/systemd/resolve", "/var/lib/dpkg"),
    *("/var/lib/apt", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/apk", "/lib/apk"),
    *("/var/lib/misc", "/var/db/timezone", "/private/var/db/timezone", "/var/select"),
)
"""Further paths of the system that programs read."""
SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "nsswitch.conf", "passwd"),
    *("group", "localtime", "timezone", "locale.conf", "locale.alias", "default/locale"),
    *("gitconfig", "gitattributes", "alternatives", "terminfo", "os-release", "lsb-release"),
    *("debian_version", "redhat-release", "fedora-release", "alpine-release", "arch-release"),
    *("hostname", "hosts", "host.conf", "resolv.conf", "services", "protocols", "networks"),
    *("gai.conf", "shells", "magic", "magic.mime", "mime.types", "inputrc", "bash.bashrc"),
    *("profile", "environment", "DIR_COLORS", "issue", "machine-id", "papersize", "pki/tls/certs"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/ca-trust", "ca-certificates"),
    *("crypto-policies", "dpkg", "rpm", "yum.repos.d", "fonts", "java", "python3"),
    *("python3.11", "python3.12", "python3.13", "perl", "php", "npmrc", "manpath.config"),
    *("apt/apt.conf", "apt/apt.conf.d", "apt/sources.list", "apt/sources.list.d", "apt/keyrings"),
    *("apt/preferences", "apt/preferences.d", "apt/trusted.gpg", "apt/trusted.gpg.d"),
    *("mtab", "fstab", "sysctl.conf", "security/limits.conf", "wgetrc", "vdpau_wrapper.cfg"),
)
"""Entries of /etc that programs read at their start, without those that hold secrets."""
GIT_SETTINGS = (".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".gitattributes")
TOOLS = (
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".asdf", ".rustup", ".sdkman", ".jenv", ".nodenv"),
    *(".local/share/mise", ".local/share/pipx", ".local/share/uv", ".local/share/fnm"),
    *(".local/share/pnpm", ".local/pipx", ".local/lib", ".deno/bin", ".bun/bin", ".goenv"),
)
"""Folders of a home directory in which version managers install programs."""
LIBRARIES = ("lib", "lib64", "libexec")
"""Folders beside a folder of programs that belong to the same installation."""
MAX_INCLUDES = 20


class FencePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved paths. Nothing is writable but a folder below `temp`."""

    readable: tuple[str, ...]
    """The paths that may be read besides the system; `("/",)` for everything."""
    programs: tuple[str, ...]
    """The directories from which programs may be executed."""
    untrusted: tuple[str, ...] = ()
    """Directories from which nothing is executed, even if they are below one of `programs`."""
    denied: tuple[str, ...] = ()
    """The paths that may not be read, wherever they are."""
    temp: str = ""


def build_fence_policy(
    *,
    cwd: str,
    readable: Iterable[str],
    untrusted: Iterable[str],
    denied: Iterable[str],
    env: Mapping[str, str],
    temp: str,
) -> FencePolicy:
    """Return the policy for commands that may read some folders, the system and git's settings."""
    roots = tuple(dict.fromkeys(map(os.path.realpath, untrusted)))
    home = env.get("HOME", "") or os.path.expanduser("~")
    programs = dict.fromkeys((*existing(PROGRAMS), *find_tools(env, home, roots)))
    git = find_git(cwd)
    wanted = (
        *readable,
        *((git.folder, git.common) if git else ()),
        *READABLE,
        *(f"/etc/{name}" for name in SETTINGS),
        *find_git_settings(home),
    )
    return FencePolicy(
        readable=("/",) if "/" in wanted else tuple(dict.fromkeys(existing(wanted))),
        programs=tuple(programs),
        untrusted=roots,
        denied=tuple(dict.fromkeys(map(os.path.realpath, denied))),
        temp=temp,
    )


def find_tools(env: Mapping[str, str], home: str, roots: Sequence[str]) -> Iterator[str]:
    """Return where programs of the person are installed: the folders of PATH and what is beside.

    A folder that the workspace contains, or that others can write, is left out.
    """
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder) or not is_trusted(folder, roots):
            continue
        yield os.path.realpath(folder)
        prefix = os.path.dirname(os.path.normpath(folder))
        for name in LIBRARIES:
            if prefix != "/" and is_trusted(path := os.path.join(prefix, name), roots):
                yield os.path.realpath(path)
    for name in TOOLS:
        if home and is_trusted(path := os.path.join(home, name), roots):
            yield os.path.realpath(path)


def is_trusted(folder: str, roots: Sequence[str]) -> bool:
    """Return True for an existing folder outside the roots that only root and we can write."""
    real = os.path.realpath(folder)
    if any(is_below(real, root) for root in roots if root != "/"):
        return False
    try:
        found = os.stat(real)
    except OSError:
        return False
    own = found.st_uid in (0, os.geteuid())
    return stat.S_ISDIR(found.st_mode) and own and not found.st_mode & stat.S_IWOTH


def find_git_settings(home: str) -> Iterator[str]:
    """Return the person's git settings and the files they include: git fails without them."""
    if not home:
        return
    waiting = [os.path.join(home, name) for name in GIT_SETTINGS]
    yield from waiting
    waiting = [os.path.join(home, ".gitconfig"), os.path.join(home, ".config/git/config")]
    for path in waiting:  # grows on the way
        for name in read_includes(path) if len(waiting) < MAX_INCLUDES else ():
            included = os.path.join(os.path.dirname(path), name.replace("~", home, 1))
            waiting.append(included)
            yield included


def read_includes(path: str) -> list[str]:
    """Return the values of `path` in the sections `include` and `includeIf`, and of file keys."""
    keys = ("path", "excludesfile", "attributesfile", "mailmap.file")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 18).split("\n")
    except OSError:
        return []
    pairs = (line.partition("=") for line in lines if "=" in line)
    return [value.strip().strip('"') for key, _, value in pairs if key.strip().lower() in keys]


def existing(paths: Iterable[str]) -> Iterator[str]:
    return (os.path.realpath(path) for path in paths if os.path.exists(path))


def is_below(path: str, folder: str) -> bool:
    """Return True for a folder and everything in it; both paths are resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def list_except(tops: Iterable[str], excluded: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return what the tops hold without the excluded paths, and the folders listed for that.

    Landlock can only allow: a folder is replaced by its other entries if one of them is excluded.
    """
    left_out = set(excluded)
    found: list[str] = []
    listed: list[str] = []
    folders = list(tops)
    while folders:
        folder = folders.pop()
        if any(is_below(folder, path) for path in left_out):
            continue
        if not any(path.startswith(folder.rstrip("/") + "/") for path in left_out):
            found.append(folder)
            continue
        listed.append(folder)
        try:
            with os.scandir(folder) as entries:
                folders += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue
    return found, listed


def read_only_environment(env: Mapping[str, str], temp: str) -> dict[str, str]:
    """Return the variables of a fenced command: no start-up files, messages in English."""
    kept = {
        name: value
        for name, value in env.items()
        if name not in ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS")
        and not name.startswith("BASH_FUNC_")
    }
    return {**kept, "TMPDIR": temp, "TMP": temp, "TEMP": temp, "LANGUAGE": "en"}
