"""The models that a picker offers, found again when the person's login changes."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from trimtab.config.paths import Home
from trimtab.contracts.errors import TrimtabError
from trimtab.models.sources import Offer, Source, Sources
from trimtab.providers.endpoints import PREFIX

LOGIN_VARIABLES = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", PREFIX + "BASE_URL")

Login = tuple[object, ...]


class ModelList:
    """Offers of models: limits, images, levels of effort, billing multiplier.

    The services are asked once, and again after somebody signed in or out, or named another
    service.
    """

    def __init__(self, env: Mapping[str, str], home: Home, *, offline: bool = False) -> None:
        self._env = env
        self._home = home
        self._offline = offline
        self._login: Login | None = None
        self._survey: asyncio.Task[Sequence[Source]] | None = None

    @property
    def known(self) -> Sequence[Offer]:
        """The offers that are known by now, without asking anybody."""
        if self._survey is None or not self._survey.done() or self._survey.cancelled():
            return ()
        return list_offers(self._survey.result())

    async def find(self) -> Sequence[Offer]:
        """Return the models of all services; those that do not answer have none."""
        return list_offers(await self.find_sources())

    async def find_sources(self, *, again: bool = False) -> Sequence[Source]:
        """Return the services with their models; ask them `again` also with the same login."""
        login = await asyncio.to_thread(self._read_login)
        changed = self._login is not None and login != self._login
        if self._survey is None or changed or again:
            self._login = login
            self._survey = asyncio.get_running_loop().create_task(self._ask(refresh=changed))
        return await asyncio.shield(self._survey)

    def close(self) -> None:
        """Stop asking."""
        if self._survey is not None:
            self._survey.cancel()

    async def _ask(self, *, refresh: bool) -> Sequence[Source]:
        with suppress(TrimtabError, OSError):
            sources = Sources(self._env, self._home, offline=self._offline)
            return await sources.survey(refresh=refresh)
        return ()

    def _read_login(self) -> Login:
        """Return something that changes with the login."""
        gh = os.path.join(self._env.get("HOME", ""), ".config", "gh", "hosts.yml")
        registry = os.path.join(self._home.config, "providers.json")
        files = (self._home.accounts, registry, gh)
        variables = (self._env.get(name) for name in LOGIN_VARIABLES)
        return (*variables, *map(read_stamp, files))


def list_offers(sources: Sequence[Source]) -> Sequence[Offer]:
    return [offer for source in sources for offer in source.models or ()]


def read_stamp(path: str) -> tuple[int, int] | None:
    """Return when a file was changed, and its size; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
