"""What a tool is given for one call: the workspace as the call may see it, and its limits."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trimtab.contracts.agents import Assignment
from trimtab.contracts.run import Run, SessionPort
from trimtab.contracts.tool import ToolResult
from trimtab.permissions.processor import Permissions
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.options import LargeOutput
from trimtab.runtime.place import Place
from trimtab.runtime.recorded import RecordedWorkspace
from trimtab.runtime.recorder import Recorder
from trimtab.workspace.local import LocalWorkspace

OUTPUT_LIMIT = 20 * 1024
HALF_A_PROMPT = 2
"""Bytes of output for each token a prompt may have: four bytes a token, half of the tokens."""


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is given besides its arguments."""

    session: SessionPort
    session_id: str
    call_id: str
    workspace: RecordedWorkspace
    files: str
    database: str
    output_limit: int
    hard_limit: int
    command_env: Mapping[str, str] = {}
    hand_over: Callable[[str, Assignment], Awaitable[ToolResult]] | None = None

    def progress(self, text: str) -> None:
        from trimtab.contracts.events.tool import ToolExecutionPartialResult

        self.session.emit(
            ToolExecutionPartialResult(tool_call_id=self.call_id, partial_output=text)
        )

    async def delegate(self, assignment: Assignment) -> ToolResult:
        if self.hand_over is None:
            return ToolResult(text="There are no other agents here.", kind="failure")
        return await self.hand_over(self.call_id, assignment)


def make_context(
    run: Run, place: Place, recorder: Recorder, output: LargeOutput, call_id: str
) -> CallContext:
    """What one call of a run is given."""
    half = (run.options.prompt_limit or DEFAULT) * HALF_A_PROMPT
    return CallContext(
        session=run.session,
        session_id=run.session.id,
        call_id=call_id,
        workspace=RecordedWorkspace(
            pin(run, place, call_id),
            recorder,
            call_id,
            agent=run.agent_id or None,
            confined=is_confined(run, call_id),
        ),
        files=output.folder or place.folder.files,
        database=place.folder.database,
        output_limit=min(find_output_limit(output), half),
        hard_limit=half,
        command_env=find_command_env(run, place, call_id),
        hand_over=run.delegate,
    )


def find_command_env(run: Run, place: Place, call_id: str) -> Mapping[str, str]:
    """The variables of a call's commands: git is kept from doing more than nobody was asked."""
    if not any(isinstance(one, Permissions) and call_id in one.harmless for one in run.processors):
        return {}
    from trimtab.runtime.git_caution import cautious_variables

    return cautious_variables(place.workspace.child_env)


def pin(run: Run, place: Place, call_id: str) -> LocalWorkspace:
    """The workspace of a call, in which paths lead where they led when it was judged."""
    for one in run.processors:
        if isinstance(one, Permissions) and call_id in one.pins:
            return place.workspace.pinned(one.pins[call_id], one.find_hidden())
    return place.workspace


def is_confined(run: Run, call_id: str) -> bool:
    """Whether a call's commands stay in the sandbox: nobody let this one out."""
    return not any(call_id in getattr(one, "released", ()) for one in run.processors)


def find_output_limit(wanted: LargeOutput) -> int:
    """The size in bytes from which output goes to a file."""
    if not wanted.enabled:
        return sys.maxsize
    if wanted.limit is not None:
        return max(1, wanted.limit)
    text = os.environ.get("COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES", "")
    return int(text) if text.isdigit() and int(text) > 0 else OUTPUT_LIMIT
