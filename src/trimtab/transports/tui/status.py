"""The status line, and the lines at the start of a session."""

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding.vi_state import InputMode

from trimtab.checkout.checkout import find_checkout
from trimtab.commands.session_views import describe_tokens
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.text import count, neutralise
from trimtab.policy.git_programs import find_git_programs
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.cells import Line, width, wrap
from trimtab.version import __version__
from trimtab.workspace.git import Git

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


COMMAND_SECONDS = 0.3
"""The time that the person's own status command has."""
LOOK_SECONDS = 0.15
"""The time that the first lines wait to learn whether files are changed."""
TIPS = (
    "Tip: Shift-Tab plans before anything is changed.",
    "Tip: @ names a file, ! runs a shell command.",
    "Tip: Enter while the agent works steers it; Ctrl-Q queues.",
    "Tip: Esc twice rewinds the conversation, the files, or both.",
    "Tip: Ctrl-O opens what is folded; ? lists the keys.",
)
"""One for each of the first sessions."""


class StatusLine:
    """Facts about the session, separated by middle dots, the least important last."""

    def __init__(self, tui: "Tui") -> None:
        self._tui = tui
        self._branch = ""
        self._changed = ""
        """A star if files of the repository are changed."""
        self._looking: asyncio.Task[Any] | None = None
        self._running: asyncio.Task[Any] | None = None
        self._told = False
        self.command_line = ""
        """The line that the person's own command printed last."""

    def refresh(self) -> None:
        """Read what may have changed since the last turn."""
        live = self._tui.live
        if live is None:
            return
        cwd = live.controls.options.cwd
        self._branch = find_checkout(cwd).branch or ""
        if self._branch and (self._looking is None or self._looking.done()):
            self._looking = self._tui.spawn(self._look_for_changes(cwd))
        command = self._tui.preferences.status_command
        if command and (self._running is None or self._running.done()):
            self._running = self._tui.spawn(self._run(command, live))

    async def mark_branch(self, live: LiveSession) -> str:
        """Return the branch of a session, with a star if files are changed and that is soon known.

        Nothing can be sent meanwhile: the session is not shown yet.
        """
        branch = live.controls.setup.checkout.branch
        if not branch:
            return ""
        self._looking = self._tui.spawn(self._look_for_changes(live.controls.options.cwd))
        await asyncio.wait((self._looking,), timeout=LOOK_SECONDS)
        return f"{branch}{self._changed}"

    async def _look_for_changes(self, cwd: str) -> None:
        """Find out behind the prompt whether tracked files differ from the last commit."""
        asked = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules")

        def has_changes() -> bool:
            # A filter that the repository configures would be started by `git status`.
            return not find_git_programs(cwd) and bool(Git(cwd).attempt(*asked))

        self._changed = "*" if await asyncio.to_thread(has_changes) else ""

    async def _run(self, command: str, live: LiveSession) -> None:
        """Run the person's own command; keep its last good line, and name a failure once."""
        facts = encode_json(describe_session(live))
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=live.controls.options.cwd,
            start_new_session=True,
        )
        problem = ""
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                out, _ = await process.communicate(facts)
            if process.returncode:
                problem = f"it ended with code {process.returncode}"
            else:
                text = neutralise(out.decode("utf-8", "replace"))
                self.command_line = text.strip().split("\n", 1)[0]
        except TimeoutError:
            problem = f"it took more than {COMMAND_SECONDS * 1000:.0f} ms"
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if problem and not self._told:
            self._told = True
            self._tui.transcript.say(
                f"! The command of statusLine failed: {problem}. Correct it in your settings.",
                "warning",
            )

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
            facts.append(f"{neutralise(self._branch)}{self._changed}")
        if tasks := len(transcript.agents) + len(live.background_commands):
            facts.append(count(tasks, "task"))
        return (("dim", " · ".join(facts)),)

    def with_mode(self, app: Application[int]) -> Line:
        """Return the status line, behind the mode of vi keys if they are in use."""
        if app.editing_mode != EditingMode.VI:
            return self.line
        normal = app.vi_state.input_mode == InputMode.NAVIGATION
        return (("bold", "NORMAL" if normal else "INSERT"), ("dim", " · "), *self.line)


def describe_session(live: LiveSession) -> JsonObject:
    """Return the facts that a status command reads, with the field names of Claude Code."""
    measured, limit = live.context
    cwd = live.controls.options.cwd
    costs = [usage.cost_usd or 0.0 for usage in live.projections.usage.models.values()]
    return {
        "hook_event_name": "Status",
        "session_id": live.id,
        "transcript_path": live.folder.events,
        "cwd": cwd,
        "model": {"id": live.model, "display_name": live.model},
        "workspace": {"current_dir": cwd, "project_dir": cwd},
        "version": __version__,
        "cost": {"total_cost_usd": sum(costs)},
        "context_window": {
            "used_tokens": measured.total if measured is not None else 0,
            "context_window_size": limit,
        },
        "mode": live.mode,
    }


LONGEST_NAME = 40
"""Characters of a session's name in the lines at its start."""


def choose_tip(session_state: str) -> str:
    """Return a tip for one of the first sessions; empty for later ones."""
    try:
        number = sum(not name.startswith(".") for name in os.listdir(session_state))
    except OSError:
        number = 0
    return TIPS[max(0, number - 1)] if number <= len(TIPS) else ""


def describe_start(live: LiveSession, home: str, branch: str, tip: str, columns: int) -> list[Line]:
    """Return the three lines at the start of a session; a tip that does not fit is left out."""
    checkout = live.controls.setup.checkout
    folder = shorten(checkout.cwd, home)
    place = [neutralise(folder)]
    if branch:
        place.append(neutralise(branch))
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
    given = str(live.folder.read_metadata().get("name") or live.projections.title.text)
    name = " ".join(neutralise(given).split())
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 1]}…"
    facts = [f"session “{name}”"] if name else []
    for fact in (*list_loaded(live), tip):
        if fact and width(" · ".join((*facts, fact))) < columns:
            facts.append(fact)
    if facts:
        lines.append((("dim", " · ".join(facts)),))
    return [row for line in lines for row in wrap(line, columns - 1, "  ")]


def list_loaded(live: LiveSession) -> list[str]:
    """Return what the session loaded, counted by kind."""
    custom = live.controls.setup.customizations
    if custom is None:
        return []
    skills = [skill for skill in custom.skills.active if skill.user_invocable]
    servers = live.controls.servers.describe()
    facts = []
    if custom.loads_instructions and (found := len(custom.instructions.instructions)):
        facts.append(count(found, "instruction file"))
    if skills:
        facts.append(count(len(skills), "skill"))
    if servers:
        facts.append(count(len(servers), "MCP server"))
    return facts


def shorten(path: str, home: str) -> str:
    """Return a path with `~` for the home folder."""
    if home and (path == home or path.startswith(home + os.sep)):
        return f"~{path[len(home) :]}"
    return path
