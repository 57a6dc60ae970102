"""Addresses in the words of a command, and the files that programs which fetch them write."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.identify import Name
from trimtab.permissions.shell.programs.options import (
    Program,
    Reading,
    find_program,
    read_options,
)

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
        *("drill", "kdig", "delv"),
    )
)
_COPIERS = frozenset(("scp", "rsync", "git", "openssl"))
"""Their words are files, too: only what has a colon in it is a host."""
ADDRESSED = _FETCHERS | _CONNECTORS | _COPIERS
"""Programs whose words are read for addresses."""
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
_SOCAT = re.compile(
    r"(?:tcp|udp|sctp|ssl|openssl|socks|proxy)\w?(?:-(?:connect|sendto|datagram))?:([^\s:,]*)",
    re.IGNORECASE,
)
_DETOUR = re.compile(r"--(?:resolve|connect-to)(?:=(.*))?", re.DOTALL)
_SETTING = re.compile(r"[\w.*:/-]*(?:proxy|url|insteadof)=(\S*)", re.IGNORECASE)
_MARKED = re.compile(rf"@|(?={UNKNOWN})")
_NAMED = re.compile(rf"[^=]*=(?:[@<]|(?={UNKNOWN}))|(?={UNKNOWN})")
_ENCODED = re.compile(rf"[^=@{UNKNOWN}]*@|(?=[^=@]*{UNKNOWN})")
_WHOLE = re.compile("")
_UPLOADS = {
    "curl": {
        **dict.fromkeys(("-d", "--data", "--data-ascii", "--data-binary", "--json"), _MARKED),
        **dict.fromkeys(("-H", "--header", "--proxy-header", "-w", "--write-out"), _MARKED),
        **dict.fromkeys(("-F", "--form"), _NAMED),
        **dict.fromkeys(("--data-urlencode", "--url-query", "--variable"), _ENCODED),
        **dict.fromkeys(("-T", "--upload-file", "--etag-compare"), _WHOLE),
    },
    "wget": dict.fromkeys(("--post-file", "--body-file", "-i", "--input-file"), _WHOLE),
    "dig": dict.fromkeys(("-f", "-k"), _WHOLE),
    "mtr": dict.fromkeys(("-F", "--filename"), _WHOLE),
}
"""Options that send files, and what stands before the names of these in their values."""
_SENDERS = frozenset(
    (
        *("scp", "rsync", "sftp", "gh", "aws", "gcloud", "az", "gsutil", "rclone", "kubectl"),
        *("http", "https", "httpie", "xh", "xhs", "curlie", "lftp", "ftp", "s3cmd", "glab"),
    )
)
_PROTOCOL = re.compile(r"[a-z][a-z0-9+.-]{0,31}://", re.IGNORECASE)
"""Bounded, as else the time for a long word without one grows with the square of its length."""
_LISTED = {
    "curl": re.compile(r"-\w*K|--config|--url=@"),
    "wget": re.compile(r"-\w*[ie]|--(input-file|execute|config)"),
    "wget2": re.compile(r"-\w*i|--(input-file|config)"),
    "aria2c": re.compile(r"-i|--(input-file|conf-path)"),
    "axel": re.compile(r"-S|--search"),
}
"""Options by which programs take addresses from files."""
_SSH = Program(flags="46AaCfGgKkMNnqsTtVvXxYyr3O", valued="BbcDEeFIiLlmopPQRSWw")
_TRANSFERS = frozenset(("clone", "fetch", "pull", "push", "ls-remote", "remote", "submodule"))
"""The subcommands of git that are given addresses."""
PROXY = re.compile(r"(?:https?|ftp|all|rsync|socks)_proxy", re.IGNORECASE)
"""Variables that hold the address of a proxy."""
_REMOTE_NAMES = ("-O", "--remote-name", "--remote-name-all")


def find_urls(text: str) -> list[str]:
    """The addresses that stand in a text as such."""
    return _URL.findall(text)


def find_addresses(program: str, arguments: Sequence[Argument]) -> Iterator[str]:
    """The addresses in arguments; of a program that connects, also those without a protocol."""
    for argument in arguments:
        yield from find_urls(argument.text)
    if program in ADDRESSED:
        for argument in _find_operands(program, arguments):
            if not _URL.search(argument.text):
                text = argument.text.removeprefix("@") if program in _CONNECTORS else argument.text
                yield from _find_bare(program, text)  # `dig @server name`
    if program == "socat":
        for argument in arguments:
            yield from (f"tcp://{host}" for host in _SOCAT.findall(argument.text) if host)
    yield from _find_detours(program, [argument.text for argument in arguments])


def _find_detours(program: str, words: Sequence[str]) -> Iterator[str]:
    """The hosts to which options of curl and settings of git send what is meant for others."""
    if program == "curl":
        for option, value in pairwise((*words, "")):
            if match := _DETOUR.fullmatch(option):
                parts = re.findall(r"\[[^\]]*\]|[^:,]+", match[1] or value)
                yield from (f"http://{part}" for part in parts if _HOST.fullmatch(part))
    elif program == "git":
        settings = (_SETTING.fullmatch(word) for word in words)
        values = [match[1] for match in settings if match and _HOST.match(match[1])]
        # `host:path` has no port.
        yield from (f"http://{re.sub(r':[^:/]*[^:/0-9].*', '', value)}" for value in values)


def find_open(name: Name, arguments: Sequence[Argument]) -> Iterator[str]:
    """The words of a program that connects of which it is not known where they lead.

    `UNKNOWN` stands in them for what is not known.
    """
    program = name.program
    yield from (a.text for a in arguments if _has_unknown_url(a.text))
    if program in _LISTED:
        yield from (UNKNOWN + a.text for a in arguments if _LISTED[program].match(a.text))
    if program in ("ssh", "sftp", "ssh-copy-id", "mosh"):
        reading = read_options(_SSH, arguments)
        arguments = [*reading.operands[:1], *(v for v in reading.values.get("-o", ()) if v)]
    elif program in _FETCHERS:
        table = find_program(program)
        unsure = table is not None and read_options(table, arguments).uncertain
        arguments = [*_find_operands(program, arguments), *[Argument(UNKNOWN)] * unsure]
        yield from (UNKNOWN + a.text for a in arguments if a.text[:1] == "@")
    elif program == "git":
        given = arguments[name.skipped :] if name.subcommand in _TRANSFERS else ()
        words = [argument for argument in given if argument.text[:1] != "-"]
        arguments = words[:1] if name.subcommand in ("fetch", "pull", "push") else words
    elif program not in _CONNECTORS | _COPIERS | {"socat"}:
        return
    yield from (a.text for a in arguments if _is_open(a.text))


def _has_unknown_url(text: str) -> bool:
    """Return True if something unknown is in an address."""
    if UNKNOWN not in text:
        return False
    parts = ((part, _PROTOCOL.search(part)) for part in re.split(r"[\s'\"]", text))
    return any(match and part.rfind(UNKNOWN) >= match.end() for part, match in parts)


def find_hosts(words: Sequence[str]) -> Iterator[str]:
    """The parts of words that may be hosts, for programs of which it is not known what they do."""
    for word in words:
        # Of a text with blanks only `host=NAME` counts.
        texts = re.findall(r"\w=(\S+)", word) if re.search(r"\s", word) else [word]
        texts += [word[2:]] if re.match(r"-\w", word) else []  # `-hexample.com`
        for part in (part for text in texts for part in re.split(r"[=,/@]", text)):
            if _HOST.fullmatch(part):
                yield part


def find_labelled(words: Sequence[str], label: str) -> Iterator[str]:
    """The addresses in words of a host without a dot in its name, which looks like any word."""
    beginning = rf"(?:^|//|[=,@:\s]){re.escape(label)}\.?(?=$|[:/?#,\s])"
    address = re.compile(beginning + r"((?::\d+(?=$|[/?#]))?(?:[/?#]\S*)?)", re.IGNORECASE)
    yield from (f"http://{label}{rest}" for word in words for rest in address.findall(word))


def _is_open(text: str) -> bool:
    """Return True if the host in a word is not known; a blank before it makes the word no host."""
    return UNKNOWN in text and not re.search(r"\s", text.partition(UNKNOWN)[0])


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
        known = text.partition(UNKNOWN)[0]
        # Of `host/$x` the host is known.
        if _HOST.fullmatch(known) and (known == text or re.search(r"[/?#]", known)):
            yield f"http://{known}"
    elif (match := _REMOTE.fullmatch(text)) and (match[2] or program in _CONNECTORS):
        yield f"ssh://{match[1]}/{match[2] or ''}"


def find_socket(path: str) -> str | None:
    """The address that bash connects to when `/dev/tcp/host/port` is opened."""
    match = re.match(r"/dev/(tcp|udp)/([^/\0]+)(?!\0)", path)
    return f"{match[1]}://{match[2]}" if match else None


def may_be_socket(path: str) -> bool:
    """Return True if the file of a redirection may be a connection to a host that is not known."""
    known = path.partition(UNKNOWN)[0]
    return known != path and bool(
        re.match(r"/dev/(tcp|udp)/[^/]*$", known) or "/dev/tcp/".startswith(known)
    )


def find_uploads(program: str, reading: Reading, rest: Sequence[Argument]) -> Iterator[Argument]:
    """The files that programs like curl are told to read and send, in whole or in part."""
    given = [(name, value) for name, values in reading.values.items() for value in values]
    given += [(option.text, value) for option, value in pairwise(rest)]
    given += [(o, Argument(v)) for o, e, v in (a.text.partition("=") for a in rest) if e]
    for name, value in given:
        if value is None or name not in _UPLOADS.get(program, {}):
            continue
        match = _UPLOADS[program][name].match(value.text)
        if match is not None:
            yield Argument(value.text[match.end() :])
        if name in ("-F", "--form"):  # several files, and those with headers
            parts = re.split("[=@<,;]", value.text)[1:]
            yield from (Argument(part) for part in parts if UNKNOWN not in part)


def find_sent(program: str, rest: Sequence[Argument]) -> Iterator[Argument]:
    """The paths elsewhere that a program is given which sends files."""
    if program not in _SENDERS:
        return
    # Behind `--` stands a command for elsewhere.
    for argument in takewhile(lambda argument: argument.text != "--", rest):
        path = re.sub(r"^[^@/]*[@=]", "", argument.text)
        remote = re.match(r"[^/]*:", path)
        if not remote and (path[:1] == "/" or ".." in path.split("/")):
            yield Argument(path, argument.pattern)


def find_downloads(program: str, reading: Reading) -> Sequence[Argument]:
    """The files that `curl -O` writes: they are named by the addresses."""
    if program != "curl" or not reading.has(*_REMOTE_NAMES):
        return ()
    if reading.has("-J", "--remote-header-name"):
        return [Argument(UNKNOWN)]
    paths = [re.sub(r"[?#].*", "", operand.text) for operand in reading.operands]
    return [Argument(path.rpartition("/")[2] or UNKNOWN) for path in paths] or [Argument(UNKNOWN)]
