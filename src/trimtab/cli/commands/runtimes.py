"""`trimtab runtimes`: lists the other agents that can do the work here; probes one."""

import os

import msgspec

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.config.paths import find_home
from trimtab.contracts.customization import RUNTIME_NAMES
from trimtab.contracts.errors import ExitCode
from trimtab.contracts.text import count
from trimtab.runtimes.binaries import Binaries, Listed
from trimtab.runtimes.contract import AgentRuntime, Capabilities
from trimtab.runtimes.models import list_models
from trimtab.runtimes.table import load_runtime


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the runtimes, and which of them are installed")
    probe = actions.add("probe", "ask a runtime's program for its version and abilities")
    probe.add_argument("name", choices=RUNTIME_NAMES, metavar="NAME", help=", ".join(RUNTIME_NAMES))
    for part in (parser, listing, probe):
        part.add_json()


def run(args: Arguments) -> int:
    if args.action == "probe":
        return run_async(probe(args))
    return run_async(print_list(args))


async def print_list(args: Arguments) -> int:
    binaries = find_binaries()
    found = [await binaries.describe(load_runtime(name)) for name in RUNTIME_NAMES]
    if args.json:
        print_json({"runtimes": found})
        return 0
    for listed in found:
        print(f"{listed.name:<9} {describe_program(listed)}")
    return 0


async def probe(args: Arguments) -> int:
    binaries, runtime = find_binaries(), load_runtime(args.name)
    listed = await binaries.describe(runtime, fresh=True)
    if args.json:
        print_json({"runtimes": [listed]})
    else:
        print(f"{runtime.title}: {describe_program(listed)}")
        for line in await describe(binaries, runtime, listed):
            print(f"  {line}")
    return 0 if listed.found else ExitCode.USAGE


def find_binaries() -> Binaries:
    return Binaries(find_home(os.environ), os.environ)


def describe_program(listed: Listed) -> str:
    if not listed.found:
        return f"not installed: {load_runtime(listed.name).install}"
    command = " ".join([str(listed.bin), *listed.leading_args])
    stand_in = ", stands in for the real program" if listed.best_effort else ""
    return f"{listed.version or 'unknown version'}  {command}{stand_in}"


async def describe(binaries: Binaries, runtime: AgentRuntime, listed: Listed) -> list[str]:
    """Return lines about the abilities of a runtime, and what its program lacks."""
    lines = [f"{name}: {'yes' if able else 'no'}" for name, able in abilities(listed.capabilities)]
    if runtime.caution:
        lines.append(runtime.caution)
    binary = await binaries.find(runtime)
    if binary is None:
        return lines
    if missing := await binaries.find_missing_flags(runtime, binary):
        lines.append(f"it lacks flags: {', '.join(missing)}")
    if models := await list_models(binaries, runtime, binary):
        lines.append(f"{count(len(models), 'model')}: {', '.join(models[:10])}")
    return lines


def abilities(capabilities: Capabilities) -> list[tuple[str, bool]]:
    return list(msgspec.to_builtins(capabilities).items())
