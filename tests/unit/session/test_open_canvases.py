"""Canvases that were open when a session ended."""

from pathlib import Path

from logkit import event, joined
from trimtab.session.open_canvases import recorded_canvases


def test_canvases_are_open_until_they_are_removed(tmp_path: Path) -> None:
    about = {"extensionId": "e", "canvasId": "c"}
    log = tmp_path / "log"
    log.write_bytes(
        joined(
            [
                event("session.canvas.recorded", {"instanceId": "1", **about, "title": "old"}, 1),
                event("session.canvas.recorded", {"instanceId": "2", **about}, 2),
                event("user.message", {"content": "x"}, 3),
                event("session.canvas.removed", {"instanceId": "2", **about}, 4),
                event("session.canvas.removed", {"instanceId": "9", **about}, 5),
                event("session.canvas.recorded", {"instanceId": "3", **about}, 6),
                event("session.canvas.recorded", {"instanceId": "1", **about, "title": "new"}, 7),
            ]
        )
    )
    found = recorded_canvases(str(log))
    assert {name: canvas.title for name, canvas in found.items()} == {"1": "new", "3": None}
