"""Tools: their specification, the access they declare, the context they run in, their results."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from trimtab.contracts.messages import Image
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.workspace import Workspace

if TYPE_CHECKING:
    from trimtab.contracts.sql import SqlDatabase

Args = Mapping[str, Any]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a call would touch. Tools declare access; they never check permissions themselves.

    `kind` is none or a row of the table in `permissions/kinds.py`. `target` is a path, command
    line, address, or tool name, by kind. `detail` carries what a permission question shows besides
    it (diff, newFileContents, server and tool name).
    """

    kind: str
    target: str = ""
    intention: str = ""
    mutates: bool = True
    detail: dict[str, Any] = {}
    interpreter: str = "bash"
    """The interpreter of the `target` of kind `shell`."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file a tool changed, in lines. `created` is true when it did not exist before."""

    path: str
    lines_added: int
    lines_removed: int
    created: bool = False


class ShellEnd(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The exit code of a command, and how long the tool waited for it."""

    exit_code: int
    duration_ms: int


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool call.

    `text` is for the model. `detail` is for a person (full output, diff); `summary` is a shorter
    message for the event of a failed call. `kind` `rejected` ends the turn.
    """

    text: str
    kind: Literal["success", "failure", "denied", "rejected"] = "success"
    detail: str | None = None
    summary: str | None = None
    images: tuple[Image, ...] = ()
    changes: tuple[FileChange, ...] = ()
    telemetry: dict[str, Any] = {}
    sandboxed: bool | None = None
    """True if its command ran in the sandbox; None if there is no sandbox."""
    fence: str | None = None
    """The fence behind which its command ran; None if it ran without one."""
    shell: ShellEnd | None = None
    """The end of a shell tool's command, if it has ended."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task for a sub-agent. The prompt is all the sub-agent knows about it."""

    agent_type: str
    prompt: str
    description: str = ""
    name: str = ""
    """A short name by which other agents and people refer to the sub-agent."""
    background: bool = False
    """True if the caller does not wait for the answer."""
    model: str | None = None
    effort: str | None = None


AgentScope = Literal["children", "siblings", "all"]
"""The agents that an agent started, those with the same caller, or all of the session."""


class AgentsPort(Protocol):
    """The sub-agents of a session, as the agent that makes a tool call reaches them.

    An agent is named by its id, or by its name if only one agent has it.
    """

    async def delegate(self, assignment: Assignment) -> ToolResult:
        """Give work to a sub-agent; return its answer, or its id if it works in the background."""
        ...

    async def read(self, agent_id: str, *, wait: float, since_turn: int) -> ToolResult:
        """Return an agent's state and its answers after a turn; wait so long if it works."""
        ...

    def list(self, scope: AgentScope, *, include_completed: bool) -> ToolResult:
        """Return the agents of a scope: those at work or idle, or also those that ended."""
        ...

    def write(self, agent_ids: Sequence[str], scope: AgentScope | None, text: str) -> ToolResult:
        """Send a message to agents: those named, and the working and idle ones of a scope."""
        ...

    async def stop(self, agent_id: str) -> ToolResult:
        """End an agent, the agents it started, and their commands."""
        ...


class ToolContext(Protocol):
    """The context a tool runs in, besides its arguments."""

    @property
    def session_id(self) -> str: ...

    @property
    def call_id(self) -> str: ...

    @property
    def workspace(self) -> Workspace: ...

    @property
    def files(self) -> str:
        """Folder for artifacts of this session, such as output too large for the model."""
        ...

    @property
    def database(self) -> str:
        """Path of this session's SQLite file, which need not exist yet."""
        ...

    @property
    def client_database(self) -> "SqlDatabase | None":
        """The database that the client keeps in place of the file, if it does."""
        ...

    @property
    def output_limit(self) -> int:
        """Bytes of text a result may have; longer ones go to a file."""
        ...

    @property
    def hard_limit(self) -> int:
        """Bytes no result may exceed, even on request: half of the largest prompt."""
        ...

    @property
    def command_env(self) -> Mapping[str, str]:
        """Variables for the commands of this call, besides the usual ones."""
        ...

    def progress(self, text: str) -> None:
        """Show output while the call runs."""
        ...

    @property
    def printed(self) -> str:
        """The end of what `progress` has shown."""
        ...

    @property
    def agents(self) -> AgentsPort: ...


class Tool(Protocol):
    """Something a model can call.

    `run` may raise: the loop turns that into a failure result. It is cancelled on abort and must
    then clean up at once.
    """

    spec: ToolSpec

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        """Return what the call would touch. No effects; may read the disk."""
        ...

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult: ...
