"""The first start without a model: another address, wrong ones, services that fail."""

import socket

from clikit import Cli, serving
from trimtab.testing import Script
from tuikit import Terminal, conversing


async def choose_address(terminal: Terminal, address: str) -> None:
    await terminal.sees("Which model do you want to talk to")
    await terminal.sees("2  another address")
    terminal.type("2")
    await terminal.sees("^address:|\naddress:")
    terminal.type(f"{address}\r")


async def test_another_address_is_asked_for_tried_and_saved(cli: Cli) -> None:
    script = [{"text": "ok"}, {"text": "Hello there."}, {"text": "Again."}]
    async with serving(script) as server:
        async with conversing(cli) as terminal:
            await choose_address(terminal, server.base_url)
            await terminal.sees("1  scripted")
            terminal.type("1")
            await terminal.shows("127-0-0-1/scripted answers; it is saved as your default model")
            await terminal.ready()
            terminal.type("hello\r")
            await terminal.shows(r"Hello there\.")
        async with conversing(cli, "-i", "and again") as terminal:
            await terminal.shows(r"Again\.")
    assert server.base_url in (cli.home / "providers.json").read_text()


async def test_wrong_addresses_are_explained_and_the_choice_stays(cli: Cli) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    failing = [{"error": 500, "repeat": "forever"}]
    async with serving(failing) as server, conversing(cli) as terminal:
        await choose_address(terminal, "gpu-box")
        await terminal.shows("gpu-box is not an address; it begins with http")
        await choose_address(terminal, f"http://127.0.0.1:{port}/v1")
        await terminal.shows("lists no models: ")
        await choose_address(terminal, server.base_url)
        await terminal.sees("1  scripted")
        terminal.type("1")
        await terminal.shows("scripted did not answer: ")
        await terminal.sees("2  another address")
        assert "127-0-0-1" not in (cli.home / "providers.json").read_text()
        assert not (cli.home / "settings.json").exists()
        server.load(Script.of([{"text": "ok"}]))
        await choose_address(terminal, server.base_url)
        await terminal.sees("1  scripted")
        terminal.type("1")
        await terminal.shows("answers; it is saved")
        await terminal.ready()
