"""The canvases of a session: panels that its clients declare, open and show."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.canvas import (
    SessionCanvasClosed,
    SessionCanvasOpened,
    SessionCanvasRecorded,
    SessionCanvasRegistryChanged,
    SessionCanvasRemoved,
    SessionCanvasUnavailable,
)
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.participants import CanvasAction
from trimtab.host.ports import ClientError, ClientGone, ClientPort
from trimtab.session.open_canvases import recorded_canvases
from trimtab.tools.schema import violations

if TYPE_CHECKING:
    from trimtab.host.hosted import HostedSession

RESTORING = 5.0
"""Seconds that a client has to open its canvases again."""


class Registered(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A canvas with the client that shows it, as clients are told of it."""

    extension_id: str
    extension_name: str | None = None
    canvas_id: str
    display_name: str
    description: str
    input_schema: JsonObject | None = None
    actions: tuple[CanvasAction, ...] | None = None


class Instance(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An open canvas."""

    instance_id: str
    extension_id: str
    extension_name: str | None = None
    canvas_id: str
    title: str | None = None
    status: str | None = None
    url: str | None = None
    input: Any = None


class _Shown(msgspec.Struct):
    """A client's answer to `canvas.open`."""

    title: str | None = None
    status: str | None = None
    url: str | None = None


class Canvases:
    """The canvases that clients declare, and those that are open.

    An instance whose client leaves stays recorded: the next client that declares the canvas under
    the same identity is asked to open it again.
    """

    def __init__(self, hosted: "HostedSession") -> None:
        self._hosted = hosted
        self._numbers: WeakKeyDictionary[ClientPort, int] = WeakKeyDictionary()
        self._open: dict[str, Instance] = {}
        self._recorded: dict[str, SessionCanvasRecorded] | None = None

    def registered(self) -> list[Registered]:
        return [canvas for canvas, _ in self._declared()]

    def opened(self) -> list[Instance]:
        return list(self._open.values())

    def find(self, canvas_id: str, extension_id: str | None = None) -> Registered:
        """Return a canvas that a client declares. Raises `UsageError`."""
        return self._find(canvas_id, extension_id)[0]

    async def open(
        self, canvas_id: str, instance_id: str, given: Any, extension_id: str | None = None
    ) -> Instance:
        """Open a canvas, or ask its client to open it with other input. Raises `UsageError`."""
        if not instance_id.strip():
            raise UsageError(f'Invalid canvas instance ID "{instance_id}".')
        canvas, client = self._find(canvas_id, extension_id)
        _check(canvas.input_schema, given, f'canvas "{canvas_id}" open input')
        return await self._show(canvas, client, instance_id, given)

    async def invoke(self, instance_id: str, action: str, given: Any) -> Any:
        """Run an action of an open canvas in its client; return what the client answers."""
        instance = self._find_open(instance_id)
        canvas, client = self._find(instance.canvas_id, instance.extension_id)
        known = {known.name: known for known in canvas.actions or ()}
        if action not in known:
            raise UsageError(
                f'Unknown action "{action}" on canvas "{canvas.canvas_id}". '
                f"Known actions: [{', '.join(known)}]."
            )
        _check(
            known[action].input_schema, given, f'action "{action}" on canvas "{canvas.canvas_id}"'
        )
        params = {"actionName": action, **_present("input", given)}
        return await self._ask(client, "canvas.action.invoke", instance, params)

    async def close(self, instance_id: str) -> None:
        """Close an open canvas and tell its client. Raises `UsageError`."""
        instance = self._open.get(instance_id)
        if instance is None:
            raise UsageError(f'Canvas instance "{instance_id}" is not open.')
        _, client = self._find(instance.canvas_id, instance.extension_id)
        await self._ask(client, "canvas.close", instance, {})
        self._open.pop(instance_id, None)
        self._records().pop(instance_id, None)
        names = _names(instance)
        self._hosted.live.emit(SessionCanvasClosed(**names))
        self._hosted.live.emit(SessionCanvasRemoved(**names))

    async def restore(self, client: ClientPort) -> None:
        """Ask a client that has just joined to open its recorded canvases again."""
        mine = {
            (canvas.extension_id, canvas.canvas_id): canvas
            for canvas, owner in self._declared()
            if owner is client
        }
        if not mine:
            return
        self._announce()
        try:
            async with asyncio.timeout(RESTORING):
                for record in tuple(self._records().values()):
                    canvas = mine.get((record.extension_id, record.canvas_id))
                    if canvas is not None:
                        await self._show(canvas, client, record.instance_id, record.input)
        except (TimeoutError, UsageError):
            return  # they stay recorded, and nobody is told that they are open

    def forget_missing(self) -> None:
        """Take the instances off the list whose client has left or no longer declares them."""
        present = {(canvas.extension_id, canvas.canvas_id) for canvas, _ in self._declared()}
        gone = [
            instance
            for instance in self._open.values()
            if (instance.extension_id, instance.canvas_id) not in present
        ]
        for instance in gone:
            self._open.pop(instance.instance_id)
            self._hosted.live.emit(SessionCanvasUnavailable(**_names(instance)))
        if gone:
            self._announce()

    def _announce(self) -> None:
        canvases = msgspec.to_builtins(self.registered())
        self._hosted.live.emit(SessionCanvasRegistryChanged(canvases=canvases))

    def _declared(self) -> Iterator[tuple[Registered, ClientPort]]:
        for participant in self._hosted.participants:
            provider = participant.capabilities.canvas_provider
            client = participant.client
            number = self._numbers.setdefault(client, len(self._numbers) + 1)
            for canvas in participant.capabilities.canvases:
                registered = Registered(
                    extension_id=provider.id if provider else f"connection:{number}",
                    extension_name=provider.name if provider else None,
                    canvas_id=canvas.id,
                    display_name=canvas.display_name or canvas.id,
                    description=canvas.description,
                    input_schema=canvas.input_schema,
                    actions=canvas.actions,
                )
                yield registered, client

    def _find(self, canvas_id: str, extension_id: str | None) -> tuple[Registered, ClientPort]:
        found = [
            (canvas, client)
            for canvas, client in self._declared()
            if canvas.canvas_id == canvas_id and extension_id in (None, canvas.extension_id)
        ]
        if not found and extension_id is not None:
            raise UsageError(f'Canvas "{extension_id}/{canvas_id}" is not registered.')
        if not found:
            raise UsageError(f'No canvas "{canvas_id}" is registered.')
        if len(found) > 1:
            owners = ", ".join(canvas.extension_id for canvas, _ in found)
            raise UsageError(
                f'Canvas "{canvas_id}" is registered by several clients; name one of them as '
                f"extensionId: {owners}."
            )
        return found[0]

    def _find_open(self, instance_id: str) -> Instance:
        instance = self._open.get(instance_id)
        if instance is not None:
            return instance
        names = msgspec.json.encode(list(self._open)).decode()
        others = f"Open instances: {names}." if self._open else "Open it with open_canvas first."
        raise UsageError(f'Canvas instance "{instance_id}" is not open. {others}')

    async def _show(
        self, canvas: Registered, client: ClientPort, instance_id: str, given: Any
    ) -> Instance:
        asked = Instance(
            instance_id=instance_id,
            extension_id=canvas.extension_id,
            extension_name=canvas.extension_name,
            canvas_id=canvas.canvas_id,
            input=given,
        )
        reply = await self._ask(client, "canvas.open", asked, _present("input", given))
        try:
            shown = msgspec.convert(reply or {}, _Shown)
        except msgspec.ValidationError as error:
            raise UsageError(f"The client's answer is not valid ({error}); correct it.") from None
        instance = msgspec.structs.replace(
            asked, title=shown.title, status=shown.status, url=shown.url
        )
        self._open[instance_id] = instance
        live, names = self._hosted.live, _names(instance)
        live.emit(
            SessionCanvasOpened(
                **names,
                extension_name=instance.extension_name,
                title=instance.title,
                status=instance.status,
                url=instance.url,
                input=given,
            )
        )
        record = SessionCanvasRecorded(**names, title=instance.title, input=given)
        if self._records().get(instance_id) != record:
            self._records()[instance_id] = record
            live.emit(record)
        return instance

    async def _ask(
        self, client: ClientPort, method: str, instance: Instance, more: JsonObject
    ) -> Any:
        params = {
            "sessionId": self._hosted.id,
            "extensionId": instance.extension_id,
            "canvasId": instance.canvas_id,
            "instanceId": instance.instance_id,
            "session": {"workingDirectory": self._hosted.live.controls.options.cwd},
            **more,
        }
        try:
            return await client.ask(method, params)
        except ClientGone:
            raise UsageError(
                f'The client that shows canvas "{instance.canvas_id}" has left; resume the session '
                "with it."
            ) from None
        except ClientError as error:
            raise UsageError(error.message) from None

    def _records(self) -> dict[str, SessionCanvasRecorded]:
        if self._recorded is None:
            self._recorded = recorded_canvases(self._hosted.live.folder.events)
        return self._recorded


def _present(name: str, value: Any) -> JsonObject:
    return {} if value is None else {name: value}


def _names(instance: Instance) -> dict[str, str]:
    return {
        "instance_id": instance.instance_id,
        "extension_id": instance.extension_id,
        "canvas_id": instance.canvas_id,
    }


def _check(schema: JsonObject | None, given: Any, where: str) -> None:
    """Raise `UsageError` if the input does not satisfy the schema that the client declared."""
    if schema is None or given is None:
        return
    if problems := violations(schema, given):
        found = "; ".join(problem.short for problem in problems)
        raise UsageError(f"Invalid input for {where}: {found}.")
