"""`trimtab net`: lists every address that could be contacted, and why, without contacting any."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.streams import print_json
from trimtab.config.paths import find_home
from trimtab.contracts.options import SessionOptions
from trimtab.customize.overview import gather
from trimtab.models.choose import is_offline
from trimtab.models.sources import Destination, Sources


def add_arguments(parser: CommandParser) -> None:
    parser.add_json()
    parser.add_argument("--offline", action="store_true", help="as with --offline in a run")


def run(args: Arguments) -> int:
    options = SessionOptions(cwd=os.getcwd(), offline=args.offline or None)
    offline = is_offline(options, os.environ)
    custom = gather(os.environ, options)
    sources = Sources(os.environ, find_home(os.environ), offline=offline)
    destinations = [*sources.destinations(custom.servers.servers.values())]
    if (service := custom.settings.values.get("webSearch")) is not None:
        address = str(service.get("url")) if isinstance(service, dict) else str(service)
        why = "the tool web_search (setting webSearch), if a call of it is allowed"
        destinations.append(Destination(address=address, why=why, allowed=not offline))
    if args.json:
        print_json({"offline": offline, "destinations": destinations})
        return 0
    print("\n".join(map(_describe, destinations)) or "Nothing is configured to be contacted.")
    print(
        "Tools contact other addresses only through commands you allow. MCP servers that are "
        "programs may contact any address. There is no telemetry."
    )
    return 0


def _describe(destination: Destination) -> str:
    proxy = f" through {destination.proxy}" if destination.proxy else ""
    refused = "" if destination.allowed else "; not while offline"
    return f"{destination.address}{proxy}\n    {destination.why}{refused}"
