"""The tools for canvases: `list_canvas_capabilities`, `open_canvas`, `invoke_canvas_action`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.agents.client_tools import read_modified
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult
from trimtab.host.canvases import Canvases

_CANVAS = {"type": "string", "description": "The canvas, one of those listed in open_canvas"}
_OWNER = {"type": "string", "description": "The provider, if several have a canvas of this name"}
_INPUT = {"type": ["object", "null"], "description": "Input that fits its schema, as an object"}


def canvas_tools(canvases: Canvases) -> list[Tool]:
    """Return the tools for the canvases that clients declare now."""
    return [ListCapabilities(canvases), OpenCanvas(canvases), InvokeAction(canvases)]


class _CanvasTool(ABC):
    def __init__(self, canvases: Canvases) -> None:
        self._canvases = canvases

    spec: ToolSpec

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        detail = {
            "toolName": self.spec.name,
            "toolDescription": self.spec.description,
            "args": dict(args),
        }
        return [
            Access(
                kind="custom-tool",
                target=self.spec.name,
                intention=f"Call {self.spec.name}",
                detail=detail,
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        try:
            return await self._act(args)
        except UsageError as error:
            return ToolResult(text=f"Canvas operation failed: {error}", kind="failure")

    @abstractmethod
    async def _act(self, args: Args) -> ToolResult: ...


class ListCapabilities(_CanvasTool):
    spec = ToolSpec(
        name="list_canvas_capabilities",
        description="",
        parameters={
            "type": "object",
            "properties": {"extensionId": _OWNER, "canvasId": _CANVAS},
            "required": ["canvasId"],
        },
    )

    def __init__(self, canvases: Canvases) -> None:
        super().__init__(canvases)
        self.spec = msgspec.structs.replace(self.spec, description=_read("list"))

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", target=self.spec.name, mutates=False)]

    async def _act(self, args: Args) -> ToolResult:
        canvas = self._canvases.find(args["canvasId"], args.get("extensionId"))
        shown = msgspec.to_builtins(canvas)
        shown.pop("description", None)
        return ToolResult(text=_pretty(shown))


class OpenCanvas(_CanvasTool):
    spec = ToolSpec(
        name="open_canvas",
        description="",
        parameters={
            "type": "object",
            "properties": {
                "extensionId": _OWNER,
                "canvasId": _CANVAS,
                "instanceId": {"type": "string", "description": "Your name for the panel"},
                "input": _INPUT,
            },
            "required": ["canvasId", "instanceId"],
        },
    )

    def __init__(self, canvases: Canvases) -> None:
        super().__init__(canvases)
        known = [
            f"- {canvas.canvas_id}: {canvas.display_name}. {canvas.description}".rstrip()
            for canvas in canvases.registered()
        ]
        text = "\n".join([_read("open"), "", "Canvases:", *(known or ["(none at present)"])])
        self.spec = msgspec.structs.replace(self.spec, description=text)

    async def _act(self, args: Args) -> ToolResult:
        instance = await self._canvases.open(
            args["canvasId"], args["instanceId"], args.get("input"), args.get("extensionId")
        )
        return ToolResult(text=_pretty(msgspec.to_builtins(instance)))


class InvokeAction(_CanvasTool):
    spec = ToolSpec(
        name="invoke_canvas_action",
        description="",
        parameters={
            "type": "object",
            "properties": {
                "instanceId": {"type": "string", "description": "The panel's instanceId"},
                "actionName": {"type": "string", "description": "The action"},
                "input": _INPUT,
            },
            "required": ["instanceId", "actionName"],
        },
    )

    def __init__(self, canvases: Canvases) -> None:
        super().__init__(canvases)
        self.spec = msgspec.structs.replace(self.spec, description=_read("invoke"))

    async def _act(self, args: Args) -> ToolResult:
        result = await self._canvases.invoke(
            args["instanceId"], args["actionName"], args.get("input")
        )
        return read_action(result)


def read_action(result: Any) -> ToolResult:
    """Return a client's answer: a tool result in wire form as it is, another value as JSON."""
    if isinstance(result, dict) and "textResultForLlm" in result:
        return read_modified(result)
    return ToolResult(text=_pretty({"result": result}))


def _pretty(value: JsonObject) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _read(name: str) -> str:
    path = os.path.join(os.path.dirname(__file__), f"{name}.md")
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
