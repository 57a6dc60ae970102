"""`trimtab plugins`: install, update, enable, disable and uninstall plugins; marketplaces."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.customizations.show import print_entries, survey_folder
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise
from trimtab.customize.plugin_install.installed import PluginStore
from trimtab.customize.plugin_install.marketplaces import Marketplaces


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the plugins a session here has")
    install = actions.add("install", "install a plugin")
    install.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder, a git address, OWNER/REPO, or NAME@MARKETPLACE; ADDRESS#REF takes a "
        "branch, a tag or a commit",
    )
    update = actions.add("update", "fetch the newest version of a plugin")
    update.add_argument("name", nargs="?", metavar="NAME")
    update.add_argument("--all", action="store_true", help="update every plugin")
    for name, summary in (
        ("enable", "use a plugin again"),
        ("disable", "stop using a plugin"),
        ("uninstall", "remove a plugin"),
        ("trust", "use a plugin as it is now, after its files changed"),
    ):
        actions.add(name, summary).add_argument("name", metavar="NAME")
    _add_marketplace_arguments(
        actions.add("marketplace", "list, add, browse or remove marketplaces")
    )
    for part in (parser, listing):
        part.add_json()
        part.add_folder()


def _add_marketplace_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list", dest="marketplace_action")
    actions.add("list", "list the marketplaces")
    add = actions.add("add", "add a marketplace")
    add.add_argument("source", metavar="SOURCE", help="a folder, a git address, or OWNER/REPO")
    for name, summary in (
        ("browse", "list the plugins of a marketplace"),
        ("update", "fetch the newest list of plugins"),
        ("remove", "remove a marketplace"),
    ):
        actions.add(name, summary).add_argument("name", metavar="NAME")


def run(args: Arguments) -> int:
    if args.action == "marketplace":
        return _run_marketplace(args)
    store = PluginStore(os.environ)
    match args.action:
        case "list":
            print_entries(survey_folder(args), kinds=("plugin",), as_json=args.json)
        case "install":
            print(f"Installed {store.install(args.source)}.")
        case "update":
            if args.all == bool(args.name):
                raise UsageError("`trimtab plugins update` needs a name or --all.")
            for name in store.names() if args.all else (args.name,):
                print(store.update(name))
        case "enable" | "disable" as action:
            store.set_enabled(args.name, enabled=action == "enable")
            print(f"{args.name} is {action}d.")
        case "trust":
            store.trust(args.name)
            print(f"Trusted {args.name}.")
        case "uninstall":
            store.uninstall(args.name)
            print(f"Removed {args.name}.")
    return 0


def _run_marketplace(args: Arguments) -> int:
    marketplaces = Marketplaces(os.environ)
    match args.marketplace_action:
        case "list":
            for name, source in marketplaces.sources():
                print(neutralise(f"{name}  {source}"))
        case "add":
            print(neutralise(f"Added {marketplaces.add(args.source)}."))
        case "remove":
            marketplaces.remove(args.name)
            print(neutralise(f"Removed {args.name}."))
        case "update":
            marketplaces.update(args.name)
            print(neutralise(f"Updated {args.name}."))
        case "browse":
            for offer in marketplaces.offers(args.name):
                print(neutralise(f"{offer.name}  {offer.description}"))
    return 0
