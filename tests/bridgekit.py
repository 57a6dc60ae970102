"""A bridge in the test's own process, in front of the scripted model server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from trimtab.bridge.server import Bridge
from trimtab.bridge.targets import ModelMapping
from trimtab.cli.bridge_session import open_bridge
from trimtab.contracts.events.own import BridgeLeftOut, BridgeRequest, ModelCall
from trimtab.contracts.options import LimitOptions, SessionOptions
from trimtab.runtime.runtime import Runtime
from trimtab.session.session import Session
from trimtab.session.unmasked import read_events
from trimtab.testing import ModelServer, Script

WIRES = ("anthropic-messages", "openai-chat", "openai-responses")
ROUTES = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
SERVICE_KEY = "sk-service-key-that-nobody-may-see"


def environment(server: ModelServer, wire: str, home: Path) -> dict[str, str]:
    """Return the variables that select the scripted server, on a wire."""
    kind = "anthropic" if wire == "anthropic-messages" else "openai"
    api = "responses" if wire == "openai-responses" else "completions"
    return {
        "HOME": str(home),
        "COPILOT_HOME": str(home / "copilot"),
        "COPILOT_PROVIDER_TYPE": kind,
        "COPILOT_PROVIDER_WIRE_API": api,
        "COPILOT_PROVIDER_BASE_URL": server.url if kind == "anthropic" else server.base_url,
        "COPILOT_PROVIDER_API_KEY": SERVICE_KEY,
        "COPILOT_MODEL": "scripted",
        "TRIMTAB_NO_LOGIN": "1",
        "PATH": "/usr/bin:/bin",
    }


LISTS = ("messages", "input")


def rebuild_requests(events: list[tuple[str, BridgeRequest]]) -> dict[str, dict[str, Any]]:
    """Return the whole requests of a log by the ids of their events, in their order."""
    built: dict[str, dict[str, Any]] = {}
    for event_id, event in events:
        before = built.get(event.continues or "", {})
        name = next((name for name in LISTS if isinstance(before.get(name), list)), "")
        kept = before.get(name, [])[: event.kept] if name else []
        fields = {
            key: value for key, value in before.items() if key != name and key not in event.removed
        }
        if not name and event.messages:
            name = "input" if event.route.endswith("/responses") else "messages"
        whole = {**fields, **event.fields}
        if name:
            whole[name] = [*kept, *event.messages]
        built[event_id] = whole
    return built


class Bridged:
    """A running bridge, the scripted server behind it, and the log."""

    def __init__(self, bridge: Bridge, session: Session, server: ModelServer) -> None:
        self.bridge = bridge
        self.server = server
        self.url = bridge.url
        self.key = bridge.key
        self.session = session
        self.path = session.log.path

    def events(self, kind: type[Any]) -> list[Any]:
        wanted = frozenset((kind.wire_name,))
        return [event.data for event in read_events(self.path, wanted)]

    @property
    def calls(self) -> list[ModelCall]:
        return self.events(ModelCall)

    @property
    def left_out(self) -> list[str]:
        return [item for event in self.events(BridgeLeftOut) for item in event.items]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The whole requests of all clients, rebuilt from the log."""
        wanted = frozenset((BridgeRequest.wire_name,))
        pairs = [(event.id, event.data) for event in read_events(self.path, wanted)]
        return list(rebuild_requests(pairs).values())


@asynccontextmanager
async def bridged(
    home: Path,
    wire: str,
    replies: Any,
    *,
    limits: LimitOptions | None = None,
    maps: Sequence[str] = (),
    strict: bool = False,
    model: str | None = None,
    env: dict[str, str] | None = None,
) -> AsyncIterator[Bridged]:
    script = Script.of(replies)
    async with ModelServer(script) as server:
        variables = {**environment(server, wire, home), **(env or {})}
        options = SessionOptions(cwd=str(home), model=model, limits=limits or LimitOptions())
        async with open_bridge(
            Runtime(env=variables),
            options,
            mappings=[ModelMapping.parse(text) for text in maps],
            strict=strict,
        ) as (bridge, session):
            yield Bridged(bridge, session, server)


def decode(body: bytes) -> Any:
    return msgspec.json.decode(body)
