"""`trimtab models`: lists the models that can be used now; probes one; fetches the embedded one."""

import os
import sys

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.pull import pull_embedded
from trimtab.cli.streams import print_json
from trimtab.config.paths import find_home
from trimtab.contracts.errors import ModelError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import count
from trimtab.models.choose import NO_MODEL, ModelChooser
from trimtab.models.probe import Findings, Probe
from trimtab.models.sources import Offer, Source, Sources


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the models with source, window, abilities and price")
    probe = actions.add("probe", "ask a model what it can really do (about 10 small calls)")
    probe.add_argument("model", metavar="ID", help="the model's id, or provider/id")
    pull = actions.add("pull", "fetch the embedded model")
    pull.add_argument(
        "model", choices=("local",), metavar="MODEL", help="local, the embedded model"
    )
    for part in (parser, listing):
        part.add_argument("--refresh", action="store_true", help="ask the services anew")
    for part in (parser, listing, probe):
        part.add_json()
        part.add_argument("--offline", action="store_true", help="contact only this machine")


def run(args: Arguments) -> int:
    match args.action:
        case "pull":
            pull_embedded(os.environ)
            return 0
        case "probe":
            return run_async(probe(args))
    return run_async(print_models(args))


async def print_models(args: Arguments) -> int:
    sources = Sources(os.environ, find_home(os.environ), offline=args.offline)
    found = await sources.survey(refresh=args.refresh)
    if args.json:
        print_json({"sources": found})
    else:
        print("\n\n".join(map(describe_source, found)) or NO_MODEL)
    return 0


async def probe(args: Arguments) -> int:
    options = SessionOptions(cwd=os.getcwd(), model=args.model, offline=args.offline)
    chosen = await ModelChooser(os.environ, find_home(os.environ)).choose(options)
    print(f"Asking {chosen.model}: at most {Probe.CALLS} calls.", file=sys.stderr)
    try:
        findings = await Probe(chosen.provider, chosen.model).run()
    except ModelError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    finally:
        await chosen.aclose()
    if args.json:
        print_json(findings)
    else:
        print(describe_findings(findings))
    return 0


def describe_source(source: Source) -> str:
    head = f"{source.name}: {source.address} ({source.because})"
    if source.models is None:
        return f"{head}\n  models unknown: {source.problem}"
    return "\n".join([head, *map(describe_offer, source.models)])


def describe_offer(offer: Offer) -> str:
    window = f"{offer.window // 1000:,}k" if offer.window else "?"
    abilities = [
        name
        for name, has in (
            ("tools", offer.tools),
            ("images", offer.vision),
            ("effort " + "|".join(offer.efforts), bool(offer.efforts)),
        )
        if has
    ]
    price = "price unknown"
    if offer.price is not None:
        price = f"${offer.price.input:g} in, ${offer.price.output:g} out"
    elif offer.billing_multiplier is not None:
        price = f"{offer.billing_multiplier:g}x"
    return f"  {offer.choice:<40} {window:>7}  {', '.join(abilities) or '-':<28} {price}"


def describe_findings(found: Findings) -> str:
    window = found.window
    size = f"at least {count(window.accepted, 'token')}"
    if window.limit is not None:
        size = f"{'cut at' if window.cut else 'refused at'} {window.limit:,} tokens"
    rows = [
        f"tool calls      {yes_or_no(found.tools)}",
        f"parallel calls  {yes_or_no(found.parallel_tools)}",
        f"images          {yes_or_no(found.images)}",
        f"effort levels   {', '.join(found.efforts) or 'none'}",
        f"prompt          {size}",
        *found.advice,
    ]
    return "\n".join(rows)


def yes_or_no(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"
