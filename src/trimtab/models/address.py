"""A model service that a person names by its address: its models, and its entry for later."""

import re
from collections.abc import Mapping

from trimtab.config.edit import change_field, read_object
from trimtab.contracts.errors import UsageError
from trimtab.providers.addresses import parse_url
from trimtab.providers.endpoints import ProviderChoice
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import discover


async def list_names_at(env: Mapping[str, str], address: str) -> list[str]:
    """Return the names of the models of a service. Raises a `TrimtabError` that says why not."""
    if not re.match(r"https?://", address):
        raise UsageError(f"{address} is not an address; it begins with http:// or https://.")
    parse_url(address)
    http = HttpClient(env)
    try:
        choice = ProviderChoice(name="address", base_url=address.rstrip("/"), auth="none")
        found = await discover(choice, http)
    finally:
        await http.aclose()
    if found.problem:
        raise UsageError(f"{address} lists no models: {found.problem}")
    if not found.models:
        raise UsageError(f"{address} has no models; load one there, or name another address.")
    return [model.id for model in found.models]


def register_address(path: str, address: str) -> str:
    """Add a service to `providers.json` unless it is there; return its name."""
    providers = [dict(entry) for entry in read_object(path).get("providers") or []]
    address = address.rstrip("/")
    for entry in providers:
        if entry.get("baseUrl") == address:
            return str(entry["name"])
    host = re.sub(r"[^a-z0-9]+", "-", parse_url(address).host.lower()).strip("-") or "server"
    taken = {entry.get("name") for entry in providers}
    names = (host, *(f"{host}-{number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    added = {"name": name, "baseUrl": address}
    change_field(path, "providers", [*providers, added])
    return name


def forget_provider(path: str, name: str) -> None:
    """Remove a service from `providers.json`."""
    providers = read_object(path).get("providers") or []
    kept = [entry for entry in providers if entry.get("name") != name]
    change_field(path, "providers", kept or None)
