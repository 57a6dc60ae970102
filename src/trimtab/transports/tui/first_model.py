"""The first start without a model: what was found, chosen by key, tried, then saved."""

import os
import sys
from typing import TYPE_CHECKING

from trimtab.config.edit import change_field
from trimtab.contracts.errors import ExitCode, TrimtabError
from trimtab.models.address import forget_provider, list_names_at, register_address
from trimtab.models.sources import Source
from trimtab.providers.embedded.weights import SIZE
from trimtab.transports.tui.other_programs import run_program
from trimtab.transports.tui.panels import Panel, Row, find_in
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

PULL = "\0pull"
AGAIN = "\0again"
ADDRESS = "\0address"
MAX_MODELS = 40
"""Models of one service that are listed."""
ADDRESS_HINT = "an OpenAI-compatible server, such as http://gpu-box:8000/v1"


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
    rows.append(Row(MenuItem("another address", ADDRESS_HINT), ADDRESS))
    rows.append(Row(MenuItem("look again", "after you have started a server or set a key"), AGAIN))

    def choose(value: str) -> None:
        tui.panel = None
        if value == AGAIN:
            tui.spawn(offer_models(tui, problem))
        elif value == ADDRESS:
            ask_address(tui, problem)
        elif value == PULL:
            tui.spawn(fetch_embedded(tui, problem))
        else:
            tui.spawn(use_model(tui, value))

    panel = Panel("Which model do you want to talk to?", find_in(rows), choose)
    panel.digits = True
    panel.on_close = lambda: tui.leave(ExitCode.AUTHENTICATION)
    tui.panel = panel
    tui.request_frame()


def ask_address(tui: "Tui", problem: str) -> None:
    """Let the person type the address of a service; its models are offered then."""

    def find(typed: str) -> list[Row]:
        label = f"look for models at {typed}" if typed else f"type the address of {ADDRESS_HINT}"
        return [Row(MenuItem(label, disabled=not typed), typed.strip())]

    def choose(address: str) -> None:
        if address:
            tui.panel = None
            tui.spawn(offer_address(tui, address, problem))

    panel = Panel("The address of the service", find, choose)
    panel.search_mark = "address: "
    panel.on_close = lambda: tui.spawn(offer_models(tui, problem))
    tui.panel = panel
    tui.request_frame()


async def offer_address(tui: "Tui", address: str, problem: str) -> None:
    """Offer the models of an address; it is registered with the one that answers."""
    tui.say_briefly(f"Looking for models at {address} …")
    try:
        names = await list_names_at(tui.terminal.env, address)
    except TrimtabError as error:
        await offer_models(tui, error.message)
        return

    def choose(name: str) -> None:
        tui.panel = None
        tui.spawn(use_address(tui, address, name))

    panel = Panel(
        f"Which model of {address}?", find_in([Row(MenuItem(name), name) for name in names]), choose
    )
    panel.digits = True
    panel.on_close = lambda: tui.spawn(offer_models(tui, problem))
    tui.panel = panel
    tui.request_frame()


async def use_address(tui: "Tui", address: str, model: str) -> None:
    """Register an address and try its model; forget it again if the model does not answer."""
    path = os.path.join(tui.terminal.home.config, "providers.json")
    name = register_address(path, address)
    if problem := await try_model(tui, f"{name}/{model}"):
        forget_provider(path, name)
        await offer_models(tui, problem)


def list_models(source: Source) -> list[Row]:
    """Return a row for each model of a service."""
    return [
        Row(MenuItem(offer.choice, remark(source, offer.describe())), offer.choice)
        for offer in (source.models or [])[:MAX_MODELS]
    ]


def remark(source: Source, facts: str) -> str:
    return ", ".join(filter(None, (facts, source.name, source.because)))


async def use_model(tui: "Tui", model: str) -> None:
    """Try a model; offer the models again if it does not answer."""
    if problem := await try_model(tui, model):
        await offer_models(tui, problem)


async def try_model(tui: "Tui", model: str) -> str:
    """Try a model with one call; save it as the default and open the session if it answers.

    Returns why it failed, or an empty text.
    """
    tui.say_briefly(f"Trying {model} …")
    try:
        await tui.opening.try_model(model)
    except TrimtabError as error:
        return f"{model} did not answer: {error.message}"
    change_field(tui.terminal.home.settings, "model", model)
    tui.transcript.say(f"{model} answers; it is saved as your default model.", "dim")
    await tui.open_first()
    return ""


async def fetch_embedded(tui: "Tui", problem: str) -> None:
    """Fetch the embedded model with the command that does it, then look again."""
    code = await run_program(tui, [sys.executable, "-m", "trimtab", "models", "pull", "local"])
    await offer_models(tui, problem if code else "The embedded model is here.")
