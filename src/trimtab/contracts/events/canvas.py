"""Events about canvases: panels that a client shows beside the conversation."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class SessionCanvasOpened(EventData, type="session.canvas.opened", ephemeral=True):
    instance_id: str
    extension_id: str
    canvas_id: str
    extension_name: str | None = None
    title: str | None = None
    status: str | None = None
    url: str | None = None
    input: Any | None = None


class SessionCanvasRecorded(EventData, type="session.canvas.recorded"):
    """Stored when a canvas is opened, so that it is opened again when the session is resumed."""

    instance_id: str
    extension_id: str
    canvas_id: str
    title: str | None = None
    input: Any | None = None


class SessionCanvasClosed(EventData, type="session.canvas.closed", ephemeral=True):
    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasRemoved(EventData, type="session.canvas.removed"):
    """Stored when a canvas is closed."""

    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasUnavailable(EventData, type="session.canvas.unavailable", ephemeral=True):
    """The client that shows an open canvas has left; it may come back."""

    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasRegistryChanged(
    EventData, type="session.canvas.registry_changed", ephemeral=True
):
    canvases: list[JsonObject]
