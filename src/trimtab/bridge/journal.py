"""The session of a bridge: records every call, and keeps all of them within the limits."""

from collections.abc import Mapping
from time import perf_counter, time

import msgspec

from trimtab.bridge.targets import Target
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import BridgeLeftOut, BridgeRequest, ModelCall
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import Usage
from trimtab.contracts.run import SessionPort
from trimtab.loop.ledger import Estimate, Ledger, estimate_call
from trimtab.loop.processors.budget import REPLY_TOKENS
from trimtab.loop.sample import estimated_fields, usage_fields

_CHARACTERS_PER_TOKEN = 4
_MAX_CONVERSATIONS = 64
"""The number of conversations that a request is compared with."""
_LARGE = 1024
_LISTS = ("messages", "input")
"""The fields with the messages of a request, in all formats."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in parts, each still encoded."""

    messages: tuple[bytes, ...]
    fields: dict[str, bytes]
    list_name: str

    @classmethod
    def parse(cls, body: bytes) -> "SentRequest":
        fields = {name: bytes(raw) for name, raw in _FIELDS.decode(body).items()}
        name = next((name for name in _LISTS if fields.get(name, b"").startswith(b"[")), "")
        items = _ITEMS.decode(fields.pop(name)) if name else []
        return cls(messages=tuple(map(bytes, items)), fields=fields, list_name=name)


class _Conversation(msgspec.Struct):
    event_id: str
    sent: SentRequest


class Call:
    """One call through the bridge, from the request to its record."""

    def __init__(self, client: str, route: str, target: Target, prompt: int) -> None:
        self.client = client
        self.route = route
        self.target = target
        self.prompt = prompt
        """The estimated tokens of the request."""
        self.request_id: str | None = None
        self.started = perf_counter()
        self.received = 0
        """The characters of the answer so far."""
        self.estimate: Estimate = Estimate(tokens=0)
        self.recorded = False


class Journal:
    """Records what a bridge does. Limits hold for all clients together.

    `ledger` has the tokens and the money that may be spent.
    """

    def __init__(
        self, session: SessionPort, limits: LimitOptions, ledger: Ledger | None = None
    ) -> None:
        self.session = session
        self._limits = limits
        self._ledger = ledger
        self._open: set[Call] = set()
        self._calls = 0
        self._conversations: list[_Conversation] = []
        self._told: set[str] = set()
        self._began = int(time() * 1000)
        self.refused = ""
        """Why a call was refused: the limit that does not allow it."""

    def open_call(self, call: Call, body: bytes, output: int | None) -> None:
        """Reserve the cost of a call and record its request.

        Raises `ModelError` with the category `budget` if the limits do not allow the call.
        """
        price = call.target.chosen.price
        call.estimate = estimate_call(price, call.prompt, min(output or REPLY_TOKENS, REPLY_TOKENS))
        if reason := self._find_limit(call):
            self.refused = reason
            raise _used_up(reason)
        self._open.add(call)
        self._calls += 1
        call.request_id = self._record_request(call, body)

    def _find_limit(self, call: Call) -> str:
        """Return the limit that does not allow a call, as part of a sentence; empty if none."""
        limit = self._limits.max_turns
        if limit is not None and self._calls >= limit:
            return f"{limit} model calls were made"
        deadline = self._limits.deadline
        if deadline is not None and time() * 1000 - self._began > deadline * 1000:
            return f"{deadline:g} s are over"
        if self._ledger is None:
            return ""
        tokens, usd = self._ledger.spending().dearest
        running = [
            Estimate(tokens=max(other.estimate.tokens, tokens), usd=max(other.estimate.usd, usd))
            for other in self._open
        ]
        fits = self._ledger.fits(call.estimate, *running)
        return "" if fits else f"{self._ledger.describe()} spent"

    def close_call(
        self,
        call: Call,
        status: str,
        usage: Usage | None = None,
        *,
        model: str | None = None,
        code: int | None = None,
    ) -> None:
        """Record how a call ended. Safe to call twice: the first record counts."""
        if call.recorded:
            return
        call.recorded = True
        self._open.discard(call)
        chosen = call.target.chosen
        counted = usage_fields(usage, chosen.price) if usage is not None else {}
        if status != "success" and (usage is None or usage.output_tokens is None):
            output = call.received // _CHARACTERS_PER_TOKEN
            if status == "aborted" or output:
                counted = estimated_fields(call.prompt, output, chosen.price)
        self.session.emit(
            ModelCall(
                purpose="bridge",
                model=model or chosen.model,
                requested_model=chosen.model,
                status=status,
                duration_ms=int((perf_counter() - call.started) * 1000),
                status_code=code,
                client=call.client,
                route=call.route,
                request_id=call.request_id,
                **counted,
            )
        )

    def tell_left_out(self, route: str, wire: str, items: tuple[str, ...]) -> None:
        """Record parts of a request that its service cannot take, each once."""
        new = [item for item in dict.fromkeys(items) if f"{route} {wire} {item}" not in self._told]
        if not new:
            return
        self._told.update(f"{route} {wire} {item}" for item in new)
        message = (
            f"Left out of requests to {route}, because the service of the model ({wire}) cannot "
            f"take it: {', '.join(new)}."
        )
        self.session.emit(BridgeLeftOut(route=route, wire=wire, items=new, message=message))

    def tell_replaced(self, name: str, model: str) -> None:
        """Record, once for each name, that a model is unknown and another one is used."""
        if name in self._told:
            return
        self._told.add(name)
        message = (
            f"The model {name[:200]!r} is unknown, so {model} is used; choose with --model or "
            "--map, or refuse unknown names with --strict-models."
        )
        self.session.emit(SessionWarning(warning_type="model_replaced", message=message))

    def close(self) -> None:
        """Record the calls that are still open as aborted."""
        for call in list(self._open):
            self.close_call(call, "aborted")

    def _record_request(self, call: Call, body: bytes) -> str:
        sent = SentRequest.parse(body)
        known, kept = self._find_conversation(sent)
        before: Mapping[str, bytes] = known.sent.fields if known is not None else {}
        changed = [name for name, value in sent.fields.items() if before.get(name) != value]
        chosen = call.target.chosen
        event = self.session.emit(
            BridgeRequest(
                client=call.client,
                route=call.route,
                model=chosen.model,
                wire=call.target.wire or chosen.provider.name,
                continues=known.event_id if known is not None else None,
                kept=kept,
                messages=[msgspec.json.decode(message) for message in sent.messages[kept:]],
                fields={name: msgspec.json.decode(sent.fields[name]) for name in changed},
                removed=[name for name in before if name not in sent.fields],
            )
        )
        if known is not None and kept == len(known.sent.messages):
            self._conversations.remove(known)
        self._conversations.append(_Conversation(event.id, sent))
        del self._conversations[:-_MAX_CONVERSATIONS]
        return event.id

    def _find_conversation(self, sent: SentRequest) -> tuple[_Conversation | None, int]:
        """Return the conversation that a request continues, and how much of it is the same."""
        best: tuple[_Conversation | None, int] = (None, 0)
        for known in reversed(self._conversations):
            if known.sent.list_name != sent.list_name:
                continue
            count = _common(known.sent.messages, sent.messages)
            if count > best[1] or (best[0] is None and _share_fields(known.sent, sent)):
                best = (known, count)
        return best


def _share_fields(left: SentRequest, right: SentRequest) -> bool:
    """Return True if large fields are the same, such as the tools: a client moves cache marks."""
    return any(
        len(value) > _LARGE and left.fields.get(name) == value
        for name, value in right.fields.items()
    )


def _common(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> int:
    """Return the number of leading messages that both share."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(index for index in range(length) if left[index] != right[index])


def _used_up(reason: str) -> ModelError:
    return ModelError(
        f"The limit of the bridge is reached: {reason}; start the bridge with a higher limit.",
        category="budget",
    )
