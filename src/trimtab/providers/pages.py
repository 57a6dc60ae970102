"""Fetches web pages for tools: from public addresses only, limited in size and time."""

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urljoin

from trimtab.contracts.errors import ModelError
from trimtab.contracts.web import FetchProblem, Page
from trimtab.providers.addresses import Url, parse_url, proxy_for
from trimtab.providers.connection import Timeouts
from trimtab.providers.http import HttpClient, Response
from trimtab.version import __version__

TIMEOUT = 30.0
MAX_BYTES = 5 * 1024 * 1024
MAX_REDIRECTS = 5
REDIRECTS = frozenset((301, 302, 303, 307, 308))
HEADERS = {
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, identity",
    "Accept-Language": "en, *;q=0.5",
    "User-Agent": f"trimtab/{__version__}",
}
PRIVATE = (
    "{host} is {address}, an address of this machine or of a private network, which web_fetch "
    "never contacts. For a server of the project use a command such as curl instead."
)


def is_public(address: str) -> bool:
    """Return True for an IP address of the public internet, also if it is embedded in IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if inner is None and found in ipaddress.IPv6Network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast


class PageFetcher:
    """Fetches pages. Each connection goes to an IP address that was checked, not to a name.

    Redirects to other hosts are not followed, since permission was given for one host.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        accepts: Callable[[str], bool] = is_public,
        seconds: float = TIMEOUT,
        max_bytes: int = MAX_BYTES,
        headers: Mapping[str, str] = {},
    ) -> None:
        self._env = env
        self._accepts = accepts
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._headers = {**HEADERS, **headers}

    async def fetch(self, url: str) -> Page:
        """Fetch a page. Raises `FetchProblem`."""
        http = HttpClient(
            self._env,
            timeouts=Timeouts(connect=15, first_byte=self._seconds, between_bytes=self._seconds),
            resolve=self._resolve,
        )
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(http, url)
        except TimeoutError:
            raise FetchProblem(f"{url} did not answer within {self._seconds:g} s.") from None
        except ModelError as error:
            raise FetchProblem(error.message) from error
        finally:
            await http.aclose()

    async def _follow(self, http: HttpClient, url: str) -> Page:
        for _ in range(MAX_REDIRECTS + 1):
            address = parse_url(url, "page")
            if address.user:
                raise FetchProblem("Addresses with a user name or password are not fetched.")
            if proxy_for(address, self._env) is not None:
                await self._check_proxied(address)
            response = await http.request("GET", url.strip(), self._headers)
            try:
                target = response.headers.get("location", "")
                if response.status not in REDIRECTS or not target:
                    return await self._read(url, response)
            finally:
                response.close()
            url = _join(url, target)
            after = parse_url(url, "page")
            secured = after.origin == f"https://{address.host}" and address.scheme == "http"
            if after.origin != address.origin and not secured:
                return Page(url=url, status=response.status, moved_to=url)
        raise FetchProblem(f"It redirects more than {MAX_REDIRECTS} times, finally to {url}.")

    async def _resolve(self, address: Url) -> Sequence[str]:
        """Return the addresses of a host. All must be public, since any may be connected to."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for host in hosts:
            if not self._accepts(host):
                raise FetchProblem(PRIVATE.format(host=address.host, address=host))
        return hosts

    async def _check_proxied(self, address: Url) -> None:
        """Check the addresses of a host that a proxy resolves, if we can resolve it too."""
        try:
            await self._resolve(address)
        except OSError:
            return

    async def _read(self, url: str, response: Response) -> Page:
        pieces, size = [], 0
        while size <= self._max_bytes and (piece := await response.receive()):
            pieces.append(piece)
            size += len(piece)
        data = b"".join(pieces)
        cut = size > self._max_bytes
        if response.headers.get("content-encoding", "").strip().lower() in ("gzip", "x-gzip"):
            data, cut = _unzip(data, self._max_bytes, cut)
        kind, _, parameters = response.headers.get("content-type", "").partition(";")
        charset = parameters.lower().partition("charset=")[2].split(";")[0].strip(" \"'")
        return Page(
            url=url,
            status=response.status,
            data=data[: self._max_bytes],
            kind=kind.strip().lower(),
            charset=charset,
            complete=not cut,
        )


def _unzip(data: bytes, max_bytes: int, cut: bool) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = unpacker.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise FetchProblem(f"The answer is corrupt ({error}).") from error
    return plain, cut or len(plain) > max_bytes


def _join(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        raise FetchProblem(f"It redirects to an invalid address: {target!r}.") from None
