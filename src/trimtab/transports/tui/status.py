"""The status line, and the lines at the start of a session."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trimtab.contracts.text import count, neutralise
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.cells import Line
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


class StatusLine:
    """Facts about the session, separated by middle dots, the least important last."""

    def __init__(self, tui: "Tui") -> None:
        self._tui = tui
        self._branch = ""
        self.command_line = ""
        """The line that the person's own command printed last."""

    def refresh(self) -> None:
        """Read what may have changed since the last turn."""
        live = self._tui.live
        if live is not None:
            self._branch = live.controls.setup.checkout.branch or ""

    @property
    def line(self) -> Line:
        """The status line as it is now."""
        if self.command_line:
            return (("dim", self.command_line),)
        live, transcript = self._tui.live, self._tui.transcript
        if live is None:
            return ()
        facts = [neutralise(live.model or "no model"), live.mode]
        measured, limit = live.context
        if measured is not None and limit:
            facts.append(f"{measured.total * 100 // limit} % of {describe_tokens(limit)}")
        costs = [usage.cost_usd for usage in live.projections.usage.models.values()]
        if known := [cost for cost in costs if cost]:
            facts.append(f"${sum(known):.2f}")
        if self._branch:
            facts.append(neutralise(self._branch))
        if transcript.agents:
            facts.append(count(len(transcript.agents), "task"))
        return (("dim", " · ".join(facts)),)


def describe_tokens(number: int) -> str:
    """Return a number of tokens in thousands: `200k`."""
    return f"{number // 1000}k" if number >= 1000 else str(number)


def describe_start(live: LiveSession, env: Mapping[str, str]) -> list[Line]:
    """Return the lines at the start of a session, at most three."""
    checkout = live.controls.setup.checkout
    folder = shorten(checkout.cwd, env.get("HOME", ""))
    place = [neutralise(folder)]
    if checkout.branch:
        place.append(neutralise(checkout.branch))
    place.append("trusted folder" if checkout.trusted else "untrusted folder")
    model = neutralise(live.model or "no model")
    provider = live.controls.agent.model.provider.name
    lines: list[Line] = [
        (
            ("accent bold", f"Trimtab {__version__}"),
            ("", f" · {model}"),
            ("dim", f" ({provider})" if provider and provider != model else ""),
            ("", f" · {live.mode}"),
        ),
        (("dim", " · ".join(place)),),
    ]
    if loaded := describe_loaded(live):
        lines.append((("dim", loaded),))
    return lines


def describe_loaded(live: LiveSession) -> str:
    """Return what the session loaded, in a line; empty if nothing."""
    custom = live.controls.setup.customizations
    if custom is None:
        return ""
    skills = [skill for skill in custom.skills.active if skill.user_invocable]
    servers = live.controls.servers.describe()
    facts = []
    if skills:
        facts.append(count(len(skills), "skill"))
    if servers:
        facts.append(count(len(servers), "MCP server"))
    name = live.projections.title.text
    if name:
        facts.insert(0, f"session {neutralise(name)}")
    return " · ".join(facts)


def shorten(path: str, home: str) -> str:
    """Return a path with `~` for the home folder."""
    if home and (path == home or path.startswith(home + os.sep)):
        return f"~{path[len(home) :]}"
    return path
