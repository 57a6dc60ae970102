"""A tool call of a runtime, as hooks and permissions see it before the runtime runs it."""

from collections.abc import Iterable, Sequence

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import CommandFence, Policy
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult
from trimtab.runtimes.contract import AgentRuntime, CallMade
from trimtab.tools.catalog import NAMES, builtin_tools

READING = frozenset(("view", "grep", "rg", "glob", "web_fetch", "web_search", "report_intent"))
"""Our names of tools that change no files."""
_OWN_TOOLS = frozenset(("task", "sql", "skill", "ask_user", "task_complete"))
"""Names of tools that mean something else in a runtime."""


class JudgedTool:
    """Stands for a runtime's tool. It says what a call would touch, and is never run here."""

    def __init__(self, runtime: AgentRuntime, theirs: str, name: str) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        self._harmless = theirs in runtime.harmless
        self._title = runtime.title
        self._theirs = theirs
        known = name in NAMES and name not in _OWN_TOOLS
        self._tool: Tool | None = builtin_tools((name,))[name] if known else None

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        if self._harmless:
            return [Access(kind="none", mutates=False)]
        if self._tool is not None:
            try:
                return self._tool.access(complete(args, self._tool.spec), ctx)
            except (KeyError, TypeError, ValueError, AttributeError, OSError):
                pass  # arguments that our tool of this name does not take
        server, tool = split_mcp(self._theirs)
        if server:
            detail = {"serverName": server, "toolName": tool, "args": dict(args)}
            return [Access(kind="mcp", target=self._theirs, detail=detail)]
        intention = f"Let {self._title} use {self._theirs}"
        return [Access(kind="custom-tool", target=self.spec.name, intention=intention)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        text = f"{self._title} runs {self._theirs} itself; it is only judged here."
        return ToolResult(text=text, kind="failure")


def complete(args: Args, spec: ToolSpec) -> JsonObject:
    """Return arguments with empty texts for those that only our tool requires."""
    required = spec.parameters.get("required")
    missing = [name for name in required if name not in args] if isinstance(required, list) else []
    return {**dict.fromkeys(missing, ""), **args}


def split_mcp(name: str) -> tuple[str, str]:
    """Return the server and the tool in a name such as `mcp__server__tool`."""
    if not name.startswith("mcp__"):
        return "", ""
    server, _, tool = name[5:].partition("__")
    return server, tool


def judge(runtime: AgentRuntime, call: CallMade) -> PendingCall:
    """Return a runtime's call as one that is about to run."""
    name, args = runtime.rename(call)
    text = encode_json(args).decode()
    return PendingCall(
        call=ToolCall(id=call.id, name=name, arguments=text),
        tool=JudgedTool(runtime, call.name, name),
        args=args,
    )


def changes_nothing(name: str) -> bool:
    """Return True if a tool, by our name, changes no files."""
    return name in READING


class NoFence:
    """The fence around the commands of a runtime: there is none, since it runs them itself.

    So a command that only seems to read is asked about, unless it is harmless as it is written.
    """

    name = "none"

    def __init__(self, title: str, fence: CommandFence | None) -> None:
        self._title = title
        self._fence = fence

    def find_problem(self) -> str:
        return f"{self._title} runs its commands itself"

    def prepare(self, policy: Policy) -> str:
        return self.find_problem()

    def shield(self, policy: Policy) -> str:
        return f"{self.find_problem()}, so files that a rule denies cannot be kept from this one"

    def keeps_writes(self) -> bool:
        return False

    def trusts(self, programs: Iterable[str], policy: Policy) -> bool:
        return self._fence is not None and self._fence.trusts(programs, policy)

    def offer_sandbox(self) -> None:
        """Offer nothing: the sandbox would not hold the commands of another program."""

    def follow(self, policy: Policy) -> None:
        """Leave the sandbox as it is: the runtime had all of it when it started."""


def describe_args(args: JsonObject) -> str:
    """Return the command of a call, for people; empty for other calls."""
    command = args.get("command")
    return command if isinstance(command, str) else ""
