"""The context of a tool call: the workspace as the call may access it, and its output limits."""

import sys
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.agent import SessionAgent, agent_of
from trimtab.agents.setup import SessionSetup
from trimtab.contracts.events.tool import ToolExecutionPartialResult
from trimtab.contracts.options import LargeOutput
from trimtab.contracts.run import Run, SessionPort
from trimtab.contracts.tool import AgentsPort
from trimtab.permissions.processor import Permissions
from trimtab.policy.git_programs import own_git_variables, safe_git_variables
from trimtab.providers.windows import DEFAULT
from trimtab.undo.recorded_workspace import RecordedWorkspace
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from trimtab.contracts.sql import SqlDatabase

DEFAULT_OUTPUT_LIMIT = 20 * 1024
KEPT_OUTPUT = 16 * 1024
"""Characters of a running call's output that are recorded if it is interrupted."""
BYTES_PER_PROMPT_TOKEN = 2
"""Bounds output to half of the prompt limit, at four bytes a token."""


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """The session, workspace and limits that a tool receives with its arguments."""

    session: SessionPort
    session_id: str
    call_id: str
    workspace: RecordedWorkspace
    files: str
    database: str
    client_database: "SqlDatabase | None" = None
    output_limit: int
    hard_limit: int
    run: Run
    command_env: Mapping[str, str] = {}
    shown: deque[str] = msgspec.field(default_factory=deque)
    """The last texts that `progress` was given."""

    def progress(self, text: str) -> None:
        self.shown.append(text)
        while len(self.shown) > 1 and sum(map(len, self.shown)) > KEPT_OUTPUT:
            self.shown.popleft()
        self.session.emit(
            ToolExecutionPartialResult(tool_call_id=self.call_id, partial_output=text)
        )

    @property
    def printed(self) -> str:
        return "".join(self.shown)[-KEPT_OUTPUT:]

    @property
    def agents(self) -> AgentsPort:
        assert self.run.agent.agents is not None
        return self.run.agent.agents(self.run, self.call_id)


class ContextFactory:
    """Creates the contexts of tool calls."""

    def __init__(self, setup: SessionSetup, output: LargeOutput) -> None:
        self._setup = setup
        self._output = output

    def __call__(self, run: Run, call_id: str) -> CallContext:
        setup, output, agent = self._setup, self._output, agent_of(run)
        hard_limit = (agent.model.prompt_limit or DEFAULT) * BYTES_PER_PROMPT_TOKEN
        return CallContext(
            session=run.session,
            session_id=run.session.id,
            call_id=call_id,
            workspace=RecordedWorkspace(
                pin(agent.parts.permissions, setup, call_id),
                agent.parts.recorder,
                call_id,
                agent=agent.id or None,
                confined=is_confined(agent, call_id),
                fenced=call_id in agent.parts.permissions.fenced,
            ),
            files=output.folder or setup.folder.files,
            database=setup.folder.database,
            client_database=setup.client_database,
            output_limit=min(find_output_limit(output), hard_limit),
            hard_limit=hard_limit,
            command_env=find_command_env(agent.parts.permissions, setup, call_id),
            run=run,
        )


def find_command_env(
    permissions: Permissions, setup: SessionSetup, call_id: str
) -> Mapping[str, str]:
    """Return variables that disable git's hooks and pagers, for read-only calls.

    Git that runs by a rule does not use repositories among the files of the workspace.
    """
    env = setup.workspace.child_env
    if call_id in permissions.fenced:
        return safe_git_variables(env)
    return own_git_variables(env) if call_id in permissions.git_by_rule else {}


def pin(permissions: Permissions, setup: SessionSetup, call_id: str) -> LocalWorkspace:
    """Return the workspace with paths pinned to what they were when permissions were checked."""
    pins = permissions.pins.get(call_id)
    if pins is None:
        return setup.workspace
    hidden = permissions.find_hidden(call_id)
    if not hidden:
        return setup.workspace.pinned(pins)
    from trimtab.permissions.linked_files import find_linked_globs

    return setup.workspace.pinned(pins, hidden, partial(find_linked_globs, permissions.policy))


def is_confined(agent: SessionAgent, call_id: str) -> bool:
    """Return False for a call that a person allowed to run outside the sandbox."""
    bypass = agent.parts.sandbox_bypass
    return bypass is None or call_id not in bypass.released


def find_output_limit(output: LargeOutput) -> int:
    """Return the size in bytes above which output is saved to a file."""
    if not output.enabled:
        return sys.maxsize
    return output.limit or DEFAULT_OUTPUT_LIMIT
