"""`trimtab models`: what can be used now and from where; `probe` asks a model what it can do."""

import os
import sys
from typing import TYPE_CHECKING

from trimtab.cli.streams import print_json
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.text import count

if TYPE_CHECKING:
    from trimtab.models.probe import Findings
    from trimtab.models.sources import Offer, Source

HELP = "list the models that can be used now; probe one; pull the embedded one"

USAGE = """\
Usage: trimtab models [--json] [--refresh] [--offline]
                                    what can be used now, from where, with which limits and price
       trimtab models probe ID [--json] [--offline]
                                    ask a model what it can really do (about 10 small calls)
       trimtab models pull local    fetch the embedded model"""


def run(argv: list[str]) -> int:
    if argv[:1] == ["pull"]:
        from trimtab.cli.pull import run as pull

        return pull(argv[1:])
    from trimtab.cli.event_loop import run_async

    flags = {word for word in argv if word.startswith("-")}
    words = [word for word in argv if word not in flags]
    if words[:1] == ["probe"] and len(words) == 2 and flags <= {"--json", "--offline"}:
        return run_async(probe(words[1], flags))
    if words or flags - {"--json", "--refresh", "--offline"}:
        raise UsageError(f"`trimtab models {' '.join(argv)}` is not known.\n{USAGE}")
    return run_async(show(flags))


async def show(flags: set[str]) -> int:
    from trimtab.config.paths import find_home
    from trimtab.models.sources import Sources

    sources = Sources(os.environ, find_home(os.environ), offline="--offline" in flags)
    found = await sources.survey(refresh="--refresh" in flags)
    if "--json" in flags:
        print_json({"sources": found})
        return 0
    print("\n\n".join(map(describe_source, found)) or nothing_found())
    return 0


async def probe(model: str, flags: set[str]) -> int:
    from trimtab.config.paths import find_home
    from trimtab.contracts.options import SessionOptions
    from trimtab.models.choose import ModelChooser
    from trimtab.models.probe import Probe

    options = SessionOptions(cwd=os.getcwd(), model=model, offline="--offline" in flags)
    chosen = await ModelChooser(os.environ, find_home(os.environ)).choose(options)
    print(f"Asking {chosen.model}: at most {Probe.CALLS} calls.", file=sys.stderr)
    try:
        findings = await Probe(chosen.provider, chosen.model).run()
    except ModelError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    finally:
        await chosen.aclose()
    if "--json" in flags:
        print_json(findings)
    else:
        print(describe_findings(findings))
    return 0


def nothing_found() -> str:
    from trimtab.models.choose import NO_MODEL

    return NO_MODEL


def describe_source(source: "Source") -> str:
    head = f"{source.name}: {source.address} ({source.because})"
    if source.models is None:
        return f"{head}\n  its models are not known: {source.problem}"
    return "\n".join([head, *map(describe_offer, source.models)])


def describe_offer(offer: "Offer") -> str:
    window = f"{offer.window // 1000:,}k" if offer.window else "?"
    able = [
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
    return f"  {offer.choice:<40} {window:>7}  {', '.join(able) or '-':<28} {price}"


def describe_findings(found: "Findings") -> str:
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
