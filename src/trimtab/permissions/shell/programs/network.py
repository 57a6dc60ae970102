"""Addresses in the words of a command, and the files that programs which fetch them write."""

import re
from collections.abc import Iterator, Sequence

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.options import Reading, find_program, read_options

_URL = re.compile(
    r"(?:https?|ftps?|wss?|git|ssh|sftp|file)://(?:[^\s'\"/@\0]*@)?(?:\[[0-9a-f:.%]+\])?"
    r"[^\s'\"<>|;)\]}\0]*(?<!/)/?",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"(?:https?|ftps?|wss?):[/\\]*(?=[^/\\\s\0])", re.IGNORECASE)
"""An address as such programs read it: with any number of slashes."""
_HOST = re.compile(
    r"(?:[^\s/@\0]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^\s/:@=\0-]+\.[^\s/:@=\0]+|localhost|0x[0-9a-f]+|\d+)"
    r"(?::[^\s\0]*)?(?:[/?#][^\s\0]*)?",
    re.IGNORECASE,
)
_REMOTE = re.compile(r"((?:[^\s/@:\0]+@)?[^\s/:@=\0-][^\s/:@=\0]*\.[^\s/:@=\0]+)(?::(.*))?")
_FETCHERS = frozenset(
    (
        *("curl", "wget", "wget2", "http", "https", "httpie", "xh", "xhs", "aria2c", "lynx", "w3m"),
        *("links", "elinks", "curlie", "hurl", "axel", "lwp-request", "GET", "HEAD", "POST"),
    )
)
_CONNECTORS = frozenset(
    (
        *("ssh", "sftp", "nc", "ncat", "netcat", "telnet", "ftp", "lftp", "ping", "dig", "host"),
        *("nslookup", "traceroute", "nmap", "mosh", "ssh-copy-id", "ssh-keyscan"),
    )
)
_COPIERS = frozenset(("scp", "rsync", "git", "openssl"))
"""Their words are files, too: only what has a colon in it is a host."""
_ADDRESSES = (
    "--url",
    "-x",
    "--proxy",
    "--preproxy",
    "--connect-to",
    "--resolve",
    "-e",
    "--referer",
)
_REMOTE_NAMES = ("-O", "--remote-name", "--remote-name-all")


def find_urls(text: str) -> list[str]:
    """The addresses that stand in a text as such."""
    return _URL.findall(text)


def find_addresses(program: str, arguments: Sequence[Argument]) -> Iterator[str]:
    """The addresses in arguments; of a program that connects, also those without a protocol."""
    for argument in arguments:
        yield from find_urls(argument.text)
    if program in _FETCHERS | _CONNECTORS | _COPIERS:
        for argument in _find_operands(program, arguments):
            if not _URL.search(argument.text):
                yield from _find_bare(program, argument.text)


def _find_operands(program: str, arguments: Sequence[Argument]) -> Iterator[Argument]:
    table = find_program(program) if program in _FETCHERS else None
    if table is None:
        yield from arguments
        return
    reading = read_options(table, arguments)
    yield from reading.operands
    for name in _ADDRESSES:
        yield from (value for value in reading.values.get(name, ()) if value is not None)


def _find_bare(program: str, text: str) -> Iterator[str]:
    """`host`, `host:port/path` of those that fetch, `user@host:path` of the others."""
    if match := _LOOSE.match(text):
        yield f"{text.partition(':')[0]}://{text[match.end() :]}".partition(UNKNOWN)[0]
    elif program in _FETCHERS:
        if _HOST.fullmatch(text):
            yield f"http://{text}"
    elif (match := _REMOTE.fullmatch(text)) and (match[2] or program in _CONNECTORS):
        yield f"ssh://{match[1]}/{match[2] or ''}"


def find_socket(path: str) -> str | None:
    """The address that bash connects to when `/dev/tcp/host/port` is opened."""
    match = re.match(r"/dev/(tcp|udp)/([^/\0]+)", path)
    return f"{match[1]}://{match[2]}" if match else None


def find_downloads(program: str, reading: Reading) -> Sequence[Argument]:
    """The files that `curl -O` writes: they are named by the addresses."""
    if program != "curl" or not reading.has(*_REMOTE_NAMES):
        return ()
    if reading.has("-J", "--remote-header-name"):
        return [Argument(UNKNOWN)]
    paths = [re.sub(r"[?#].*", "", operand.text) for operand in reading.operands]
    return [Argument(path.rpartition("/")[2] or UNKNOWN) for path in paths] or [Argument(UNKNOWN)]
