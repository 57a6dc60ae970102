"""Starts a conversation in the terminal with live rows, as the flags and settings ask for."""

import sys
from collections.abc import Callable, Sequence

import msgspec

from trimtab.cli.early_terminal import original_attributes
from trimtab.cli.event_loop import run_async
from trimtab.cli.opening import open_session
from trimtab.cli.parse import Values
from trimtab.config.settings import Settings
from trimtab.contracts.options import Client, Isolation, SessionOptions
from trimtab.contracts.run import Prompt
from trimtab.runtime.live import LiveSession
from trimtab.runtime.runtime import Runtime
from trimtab.transports.headless.logfile import LogFile
from trimtab.transports.tui.ascii_text import is_utf8, to_ascii
from trimtab.transports.tui.screen import Screen

_EXISTING = ("resume", "continue", "session_id")
"""Flags that name an existing session."""


def converse(runtime: Runtime, options: SessionOptions, values: Values, log: LogFile) -> int:
    """Run a conversation; return the exit code."""
    if is_utf8(runtime.env):
        screen = Screen(0, original_attributes())
    else:
        screen = Screen(0, original_attributes(), to_ascii)
    try:
        return run_async(_converse(runtime, options, values, log, screen))
    finally:
        if not screen.closed:
            screen.restore()


async def _converse(
    runtime: Runtime, options: SessionOptions, values: Values, log: LogFile, screen: Screen
) -> int:
    # prompt_toolkit is imported only after the terminal has stopped echoing.
    from prompt_toolkit.input.vt100 import Vt100Input

    from trimtab.transports.tui.app import Opening, Terminal, Tui
    from trimtab.transports.tui.preferences import read_preferences

    opener = SessionOpener(runtime, options, values)
    tui = Tui(
        Terminal(
            screen=screen,
            input=Vt100Input(sys.stdin),
            env=runtime.env,
            home=runtime.home,
            cwd=options.cwd,
            mask=runtime.build_masker(options).mask_text,
        ),
        Opening(
            opener.open_first,
            opener.open_new,
            opener.resume,
            opener.open_isolated,
            opener.try_model,
            choose_first=must_choose(runtime, values),
        ),
        read_preferences(
            Settings(runtime.home),
            runtime.env,
            no_color="no_color" in values,
            plain_diff="plain_diff" in values,
            may_ask="no_ask_user" not in values,
        ),
        build_prepare(values),
        log.on_event,
    )
    return await tui.run(values.get("interactive"))


class SessionOpener:
    """Opens the sessions of a conversation, with the model that was tried last."""

    def __init__(self, runtime: Runtime, options: SessionOptions, values: Values) -> None:
        self._runtime = runtime
        self._options = options
        self._values = values

    @property
    def _fresh(self) -> SessionOptions:
        return msgspec.structs.replace(self._options, session_id=None, name=None)

    async def open_first(self, client: Client) -> LiveSession:
        """Open the session that the flags ask for."""
        return await open_session(self._runtime, self._options, self._values, client)

    async def open_new(self, client: Client) -> LiveSession:
        return await self._runtime.create(self._fresh, client)

    async def open_isolated(self, client: Client, name: str) -> LiveSession:
        """Open a session in a worktree of its own."""
        isolation = Isolation(name=name or None)
        options = msgspec.structs.replace(self._fresh, isolation=isolation)
        return await self._runtime.create(options, client)

    async def resume(self, client: Client, session_id: str) -> LiveSession:
        return await self._runtime.resume(session_id, self._fresh, client)

    async def try_model(self, name: str) -> None:
        """Call a model once, and use it from now on if it answers. Raises `ModelError`."""
        from trimtab.models.probe import try_once

        tried = msgspec.structs.replace(self._options, model=name)
        chosen = await self._runtime.models.choose(tried)
        try:
            await try_once(chosen.provider, chosen.model)
        finally:
            await chosen.aclose()
        self._options = tried


def must_choose(runtime: Runtime, values: Values) -> bool:
    """Return True if `--resume` stands alone and there are several sessions."""
    return values.get("resume") is True and len(runtime.store.folders()) != 1


def build_prepare(values: Values) -> Callable[[str, Sequence[str], str], Prompt | str]:
    """Return a function that attaches files: of flags to the first prompt, and those named."""
    from_flags: list[str] = list(values.get("attachment", []))

    def prepare(text: str, images: Sequence[str], cwd: str) -> Prompt | str:
        given = (*from_flags, *images)
        from_flags.clear()
        if not given and "@" not in text:
            return text
        from trimtab.attachments.attach import attach

        return attach(text, given, cwd, values.get("add_dir", []))

    return prepare
