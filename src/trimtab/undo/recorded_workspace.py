"""The workspace of a tool call, which records every change the call makes."""

from collections.abc import Callable, Sequence

import msgspec

from trimtab.contracts.tool import Access
from trimtab.contracts.workspace import Command, CommandState, Stamp
from trimtab.undo.recorder import Reason, Recorder
from trimtab.workspace.local import LocalWorkspace


class RecordedWorkspace:
    """A workspace that records writes as changes of one tool call."""

    def __init__(
        self,
        inner: LocalWorkspace,
        recorder: Recorder,
        call_id: str,
        *,
        agent: str | None,
        confined: bool,
        fenced: bool,
    ) -> None:
        self.root = inner.root
        self.shells = RecordedShells(
            inner, recorder, call_id, agent=agent, confined=confined, fenced=fenced
        )
        self.resolve = inner.resolve
        self.inspect = inner.inspect
        self.list = inner.list
        self.load = inner.load
        self.read = inner.read
        self.read_lines = inner.read_lines
        self.remember = inner.remember
        self.changed = inner.changed
        self.search = inner.search
        self.run = inner.run
        self.aclose = inner.aclose
        self._inner = inner
        self._recorder = recorder
        self._reason = Reason("tool", call_id, agent=agent)

    async def write(
        self, path: str, data: bytes, *, new: bool = False, stamp: Stamp | None = None
    ) -> None:
        if not new:
            stamp = await self._inner.save_buffer(path, stamp)
        async with self._recorder.writing(path, reason=self._reason):
            await self._inner.write(path, data, new=new, stamp=stamp)

    async def remove(self, path: str) -> None:
        await self._inner.save_buffer(path)
        async with self._recorder.writing(path, reason=self._reason):
            await self._inner.remove(path)

    async def move(self, path: str, target: str) -> None:
        await self._inner.save_buffer(path)
        async with self._recorder.writing(path, target, reason=self._reason):
            await self._inner.move(path, target)


class RecordedShells:
    """Shells that record the changes of one tool call's commands."""

    def __init__(
        self,
        inner: LocalWorkspace,
        recorder: Recorder,
        call_id: str,
        *,
        agent: str | None,
        confined: bool,
        fenced: bool,
    ) -> None:
        self.stop = inner.shells.stop
        self.list = inner.shells.list
        self._inner = inner.shells
        self._recorder = recorder
        self._call_id = call_id
        self._agent = agent
        self._writing: Reason | None = None
        self.confined = confined
        """True if the call's commands must stay in the sandbox, if there is one."""
        self.fenced = fenced
        """True if nobody approved the call, so that its commands must change nothing."""

    async def execute(
        self,
        command: Command,
        *,
        wait: float,
        limit: int,
        listener: Callable[[bytes], None] | None = None,
    ) -> CommandState:
        command = msgspec.structs.replace(
            command,
            confined=self.confined,
            fenced=self.fenced,
            call_id=self._call_id,
            agent_id=self._agent or "",
        )
        if not self._recorder.may_change(Access(kind="shell", target=command.text)):
            return await self._inner.execute(command, wait=wait, limit=limit, listener=listener)
        reason = Reason("shell", self._call_id, command.text[:1000], self._agent)
        await self._recorder.begin(reason)
        try:
            state = await self._inner.execute(command, wait=wait, limit=limit, listener=listener)
            if state.exit_code is None:
                self._recorder.started(state.shell_id, reason)
            return state
        finally:
            await self._recorder.end(reason)

    async def write(self, shell_id: str, keys: Sequence[str | bytes]) -> None:
        reason = Reason("shell", self._call_id, f"input to {shell_id}", self._agent)
        await self._recorder.begin(reason)
        try:
            await self._inner.write(shell_id, keys)
        except BaseException:
            await self._recorder.end(reason)
            raise
        self._writing = reason

    async def read(self, shell_id: str, *, wait: float, limit: int) -> CommandState:
        try:
            return await self._inner.read(shell_id, wait=wait, limit=limit)
        finally:
            if self._writing is not None:
                await self._recorder.end(self._writing)
                self._writing = None
