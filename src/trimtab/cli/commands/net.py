"""`trimtab net`: every address that could be contacted, and why; none is contacted to say so."""

import os

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import UsageError

HELP = "list every address that could be contacted, and why"
USAGE = "Usage: trimtab net [--json] [--offline]"


def run(argv: list[str]) -> int:
    if unknown := set(argv) - {"--json", "--offline"}:
        raise UsageError(f"Unknown argument {unknown.pop()!r}; write trimtab net [--json].")
    from trimtab.config.paths import find_home
    from trimtab.contracts.options import SessionOptions
    from trimtab.customize.overview import gather
    from trimtab.models.sources import Destination, Sources

    offline = "--offline" in argv or os.environ.get("COPILOT_OFFLINE", "").lower() in {"1", "true"}
    servers = gather(os.environ, SessionOptions(cwd=os.getcwd())).servers.servers
    sources = Sources(os.environ, find_home(os.environ), offline=offline)
    destinations = sources.destinations(servers.values())
    if "--json" in argv:
        print_json({"offline": offline, "destinations": destinations})
        return 0

    def describe(one: Destination) -> str:
        way = f" through {one.proxy}" if one.proxy else ""
        return f"{one.address}{way}\n    {one.why}" + ("" if one.allowed else "; not while offline")

    print("\n".join(map(describe, destinations)) or "Nothing is configured to be contacted.")
    print(
        "Tools reach other addresses only as a command you allow does, and MCP servers that are "
        "programs as they like. There is no telemetry."
    )
    return 0
