"""Finds model servers on this machine, on their default ports."""

import asyncio
from collections.abc import Mapping

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.providers.addresses import parse_url
from trimtab.providers.endpoints import ProviderChoice
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import chat_models, fetch, read_model

VARIABLE = "TRIMTAB_LOCAL_SERVERS"
SERVERS = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}
_TIMEOUT = 0.15


def server_addresses(env: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses to try, by name of the server. The variable replaces the list.

    Its value is `off`, or comma-separated `name=address` pairs with loopback addresses.
    """
    text = env.get(VARIABLE)
    if text is None:
        return dict(SERVERS)
    if text.strip().lower() in {"", "off"}:
        return {}
    found = {}
    for entry in text.split(","):
        name, equals, address = entry.strip().partition("=")
        if not equals or not _is_local(address):
            raise ConfigurationError(
                f"{VARIABLE} contains the entry {entry.strip()!r}; write "
                "name=http://127.0.0.1:PORT/v1 with an address of this machine, or off."
            )
        found[name] = address
    return found


async def find_servers(env: Mapping[str, str]) -> list[ProviderChoice]:
    """Return the servers that answer. All are asked in parallel, with a short timeout."""
    addresses = server_addresses(env)
    found = await asyncio.gather(*(_ask(name, url) for name, url in addresses.items()))
    return [choice for choice in found if choice is not None]


async def _ask(name: str, address: str) -> ProviderChoice | None:
    choice = ProviderChoice(name=name, base_url=address, auth="none")
    http = HttpClient({}, offline=True)
    try:
        async with asyncio.timeout(_TIMEOUT):
            models = chat_models([read_model(raw) for raw in await fetch(choice, http, "")])
    except (TimeoutError, ModelError):
        return None
    finally:
        await http.aclose()
    first = models[0] if models else None
    return ProviderChoice(
        name=name,
        base_url=address,
        auth="none",
        model=first.id if first else None,
        window=first.window if first else None,
    )


def _is_local(address: str) -> bool:
    try:
        return parse_url(address).is_loopback
    except ModelError:
        return False
