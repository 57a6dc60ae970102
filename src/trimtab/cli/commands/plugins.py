"""`trimtab plugins`: install, update, enable, disable and uninstall plugins; marketplaces."""

from trimtab.contracts.errors import UsageError

HELP = "list, install, update, enable, disable or uninstall plugins"
USAGE = """\
Usage: trimtab plugins [list] [--json]
       trimtab plugins install SOURCE    a folder, a git address, OWNER/REPO, or NAME@MARKETPLACE;
                                         ADDRESS#REF takes a branch, a tag or a commit
       trimtab plugins update NAME | --all
       trimtab plugins enable NAME | disable NAME | uninstall NAME
       trimtab plugins trust NAME        use it as it is now, after it was changed
       trimtab plugins marketplace [list]
       trimtab plugins marketplace add SOURCE | remove NAME | browse NAME | update NAME"""


def run(argv: list[str]) -> int:
    from trimtab.cli.customizations.arguments import read_arguments
    from trimtab.cli.customizations.show import print_entries, survey_here
    from trimtab.customize.plugin_install.installed import PluginStore

    given = read_arguments(argv, USAGE, switches=("--all",))
    if given.words[:1] == ["marketplace"]:
        return _run_marketplace(given.words[1:])
    store = PluginStore.here()
    match given.words:
        case [] | ["list"]:
            print_entries(survey_here(given), kinds=("plugin",), as_json=given.json)
        case ["install", source]:
            print(f"Installed {store.install(source)}.")
        case ["update"] if given.switches:
            for name in store.names():
                print(store.update(name))
        case ["update", name]:
            print(store.update(name))
        case ["enable" | "disable" as action, name]:
            store.set_enabled(name, enabled=action == "enable")
            print(f"{name} is {action}d.")
        case ["trust" | "uninstall" as action, name]:
            done = {"trust": (store.trust, "Trusted"), "uninstall": (store.uninstall, "Removed")}
            done[action][0](name)
            print(f"{done[action][1]} {name}.")
        case _:
            raise UsageError(f"`trimtab plugins {' '.join(argv)}` is not known.\n{USAGE}")
    return 0


def _run_marketplace(words: list[str]) -> int:
    from trimtab.contracts.text import neutralise
    from trimtab.customize.plugin_install.marketplaces import Marketplaces

    places = Marketplaces.here()
    match words:
        case [] | ["list"]:
            for name, source in places.sources():
                print(neutralise(f"{name}  {source}"))
        case ["add", source]:
            print(neutralise(f"Added {places.add(source)}."))
        case ["remove", name]:
            places.remove(name)
            print(neutralise(f"Removed {name}."))
        case ["update", name]:
            places.update(name)
            print(neutralise(f"Updated {name}."))
        case ["browse", name]:
            for offer in places.offers(name):
                print(neutralise(f"{offer.name}  {offer.description}"))
        case _:
            raise UsageError(f"`trimtab plugins marketplace` takes no such words.\n{USAGE}")
    return 0
