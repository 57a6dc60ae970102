"""`trimtab mcp`: list, show, add, remove, enable, disable and try MCP servers."""

import os

from trimtab.contracts.errors import UsageError

HELP = "list, get, add, remove, enable, disable or test MCP servers"
USAGE = """\
Usage: trimtab mcp [list] [--json] [-C DIR]
       trimtab mcp get NAME [--json] [--show-secrets]
       trimtab mcp add NAME [--env KEY=VALUE] [--tools A,B] [--timeout MS] -- COMMAND [ARGS…]
       trimtab mcp add NAME --transport http|sse [--header 'Name: value'] URL
       trimtab mcp remove NAME | enable NAME | disable NAME
       trimtab mcp test NAME [--json]"""


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.files import set_listed
    from trimtab.cli.customizations.servers import (
        add_server,
        remove_server,
        show_server,
        test_server,
    )
    from trimtab.cli.customizations.show import print_entries, survey_here

    given = read_arguments(
        argv,
        USAGE,
        values=("--transport", "--tools", "--timeout"),
        lists=("--env", "--header"),
        switches=("--show-secrets",),
    )
    match given.words:
        case [] | ["list"]:
            print_entries(survey_here(given), kinds=("mcp-server",), as_json=given.json)
        case ["get", name]:
            show_server(name, given)
        case ["test", name]:
            return test_server(name, given)
        case ["add", name, target, *args]:
            print(f"Added {name} to {add_server(name, target, args, given)}.")
        case ["remove", name]:
            print(f"Removed {name} from {remove_server(name)}.")
        case ["enable" | "disable" as action, name]:
            if not any(entry.kind == "mcp-server" for entry in survey_here(given).find(name)):
                raise UsageError(f"There is no MCP server {name!r}; see `trimtab mcp`.")
            set_listed(os.environ, "disabledMcpServers", name, listed=action == "disable")
            print(f"{name} is {action}d.")
        case _:
            raise UsageError(f"`trimtab mcp {' '.join(argv)}` is not known.\n{USAGE}")
    return 0
