"""The first start without a model: what was found, chosen by key, tried, then saved."""

import sys
from typing import TYPE_CHECKING

from trimtab.config.edit import change_field
from trimtab.contracts.errors import TrimtabError
from trimtab.models.sources import Source
from trimtab.providers.embedded.weights import SIZE
from trimtab.transports.tui.other_programs import run_program
from trimtab.transports.tui.panels import Panel, Row, find_in
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

PULL = "\0pull"
AGAIN = "\0again"
MAX_MODELS = 40
"""Models of one service that are listed."""
ADVICE = (
    "To use another service, set OPENAI_API_KEY or ANTHROPIC_API_KEY, or point "
    "COPILOT_PROVIDER_BASE_URL at any OpenAI-compatible server; then look again."
)


async def offer_models(tui: "Tui", problem: str) -> None:
    """Show the models that were found, in a panel; without any, say how to get one."""
    tui.transcript.say(problem, "warning")
    tui.say_briefly("Looking for models …")
    sources = await tui.models.find_sources(again=True)
    rows = [row for source in sources for row in list_models(source)]
    for source in sources:
        if source.problem:
            tui.transcript.say(f"{source.name} ({source.because}): {source.problem}", "dim")
    if not any(source.name == "local" for source in sources):
        size = f"{SIZE / 1e9:.1f} GB"
        item = MenuItem("fetch the small embedded model", f"{size}, runs on this machine")
        rows.append(Row(item, PULL))
    rows.append(Row(MenuItem("look again", "after you have started a server or set a key"), AGAIN))
    tui.transcript.say(ADVICE, "dim")

    def choose(value: str) -> None:
        tui.panel = None
        if value == AGAIN:
            tui.spawn(offer_models(tui, problem))
        elif value == PULL:
            tui.spawn(fetch_embedded(tui, problem))
        else:
            tui.spawn(use_model(tui, value))

    tui.panel = Panel("Which model do you want to talk to?", find_in(rows), choose)
    tui.panel.on_close = lambda: tui.leave(7)
    tui.request_frame()


def list_models(source: Source) -> list[Row]:
    """Return a row for each model of a service."""
    return [
        Row(MenuItem(offer.choice, remark(source, offer.describe())), offer.choice)
        for offer in (source.models or [])[:MAX_MODELS]
    ]


def remark(source: Source, facts: str) -> str:
    return ", ".join(filter(None, (facts, source.name, source.because)))


async def use_model(tui: "Tui", model: str) -> None:
    """Try a model with one call; save it as the default and open the session if it answers."""
    tui.say_briefly(f"Trying {model} …")
    try:
        await tui.opening.try_model(model)
    except TrimtabError as error:
        await offer_models(tui, f"{model} did not answer: {error.message}")
        return
    change_field(tui.terminal.home.settings, "model", model)
    tui.transcript.say(f"{model} answers; it is saved as your default model.", "dim")
    await tui.open_first()


async def fetch_embedded(tui: "Tui", problem: str) -> None:
    """Fetch the embedded model with the command that does it, then look again."""
    code = await run_program(tui, [sys.executable, "-m", "trimtab", "models", "pull", "local"])
    await offer_models(tui, problem if code else "The embedded model is here.")
