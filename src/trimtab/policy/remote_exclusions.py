"""Applies the content exclusions of GitHub organizations, if GitHub serves the model."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.permission import Rule
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Prompt, Run
from trimtab.models.catalog import WithHeaders
from trimtab.permissions.processor import Permissions
from trimtab.policy.exclusions import EVERYWHERE, find_addresses, to_rules
from trimtab.providers.copilot import Copilot, Exclusion

SECONDS = 10.0
Fetch = Callable[[Sequence[str]], Awaitable[tuple[Exclusion, ...]]]


class RemoteExclusions(Processor):
    """Fetches exclusions once, before the first tool call or attachment, and adds them as rules."""

    def __init__(self, fetch: Fetch, folders: Sequence[str], permissions: Permissions) -> None:
        self._fetch = fetch
        self._folders = folders
        self._permissions = permissions
        self._asked = False
        self._lock = asyncio.Lock()

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.attachments:
            await self._ask(run)
        return prompt

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall:
        await self._ask(run)
        return pending

    async def _ask(self, run: Run) -> None:
        async with self._lock:  # calls run in parallel, but not before the answer
            if self._asked:
                return
            self._asked = True
            try:
                async with asyncio.timeout(SECONDS):
                    addresses = await asyncio.to_thread(find_addresses, self._folders)
                    found = await self._fetch(addresses)
            except (TrimtabError, TimeoutError) as error:
                why = str(error) or f"no answer within {SECONDS:g} seconds"
                _warn(run, f"Content exclusions could not be fetched from GitHub: {why}")
                return
            self._permissions.forbid(tuple(self._read(run, found)))

    def _read(self, run: Run, found: Sequence[Exclusion]) -> Iterator[Rule]:
        for exclusion in found:
            for path in exclusion.paths:
                try:
                    yield from to_rules({EVERYWHERE: [path]}, exclusion.source, self._folders)
                except TrimtabError as error:
                    _warn(run, error.message)


def _warn(run: Run, message: str) -> None:
    run.session.emit(SessionWarning(warning_type="content_exclusion", message=message))


def build_remote(
    folders: Sequence[str], provider: Provider, permissions: Permissions
) -> RemoteExclusions | None:
    """Build the processor if GitHub serves the model; no other service learns the repositories."""

    inner = provider.provider if isinstance(provider, WithHeaders) else provider
    if not isinstance(inner, Copilot):
        return None
    return RemoteExclusions(inner.fetch_exclusions, folders, permissions)
