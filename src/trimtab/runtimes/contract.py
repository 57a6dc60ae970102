"""The contract of a runtime: how another agent's program is found, called and read."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Usage

ModelSource = Literal["own", "host"]
"""The models that a runtime uses: its own, or those of Trimtab, through the bridge."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The abilities of a runtime. All other code asks for these, never for a name."""

    prompt_via_arg: bool = False
    """True if the prompt must be an argument; all others read it from standard input."""
    model_discovery: bool = False
    """True if it can list its models."""
    streaming: bool = False
    """True if answers arrive in pieces."""
    session_resume: bool = False
    system_prompt_file: bool = False
    """True if it takes a system prompt of its own, besides the prompt."""
    effort_levels: bool = False
    token_tracking: bool = False
    cost_tracking: bool = False
    model_shorthands: bool = False
    """True if names such as `sonnet` or `opus` are models to it."""
    budget_cap: bool = False
    bare_mode: bool = False
    fallback_model: bool = False
    session_persistence_control: bool = False
    asks_permission: bool = False
    """True if it asks before each tool call, so that rules and hooks decide."""
    host_models: bool = False
    """True if it can use the models of Trimtab."""
    images: bool = False
    """True if it takes the images of a prompt."""


class Binary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The program of a runtime on this machine."""

    bin: str
    leading_args: tuple[str, ...] = ()
    is_native: bool = False
    """True if it is machine code, False if it is a script."""
    version: str = ""
    best_effort: bool = False
    """True if it stands in for the real program and may lack flags."""

    @property
    def command(self) -> tuple[str, ...]:
        return (self.bin, *self.leading_args)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The model server that a runtime uses instead of its own service."""

    url: str


class RuntimeSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `runtimes.NAME`. All but `path` are for runtimes that know them."""

    path: str = ""
    stream_mode: Literal["on", "off"] = "on"
    disable_builtin_mcps: bool = True
    suppress_instructions: bool = True
    reasoning_summaries: bool = False


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for a runtime, and the conditions under which it is answered."""

    prompt: str
    cwd: str
    images: tuple[tuple[str, str], ...] = ()
    """MIME type and base64 data of each image."""
    handed_over: int = 0
    """The number of earlier messages that the prompt begins with."""
    system: str = ""
    """Instructions of a custom agent."""
    model: str | None = None
    effort: str | None = None
    resume: str | None = None
    """The id of the runtime's own session to go on with."""
    folders: tuple[str, ...] = ()
    """Folders besides the working directory that may be used."""
    endpoint: Endpoint | None = None
    """The models of Trimtab; None leaves the runtime its own."""
    max_continues: int | None = None
    settings: RuntimeSettings = RuntimeSettings()
    scratch: str = ""
    """An empty folder that lasts as long as the program runs."""


class RenamedTool(msgspec.Struct, frozen=True):
    """Our names for a runtime's tool, and for its arguments where they differ."""

    tool: str
    fields: Mapping[str, str] = {}

    def rename(self, args: JsonObject) -> JsonObject:
        return {self.fields.get(name, name): value for name, value in args.items()}

    def restore(self, args: JsonObject) -> JsonObject:
        """Return our arguments under the runtime's names."""
        names = {ours: theirs for theirs, ours in self.fields.items()}
        return {names.get(name, name): value for name, value in args.items()}


class SessionOpened(msgspec.Struct, frozen=True):
    """The runtime named its own session, by which it can be resumed."""

    id: str


class ModelNamed(msgspec.Struct, frozen=True):
    """The runtime said which model it uses."""

    model: str


class TurnBegan(msgspec.Struct, frozen=True):
    """A model call began."""


class Piece(msgspec.Struct, frozen=True):
    """A piece of an answer, or of the reasoning before it."""

    text: str
    is_reasoning: bool = False


class CallMade(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a message asks for, in the words of the runtime."""

    id: str
    name: str
    args: JsonObject = {}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A whole message of the model. `parent` is the call whose sub-agent said it."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[CallMade, ...] = ()
    parent: str = ""


class CallBegan(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call began to run."""

    call: CallMade
    parent: str = ""


class CallEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call ended."""

    id: str
    text: str = ""
    failed: bool = False
    exit_code: int | None = None


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one model call, or of all calls if the runtime reports only the sum."""

    usage: Usage
    model: str | None = None
    cost_usd: float | None = None
    settles: int = 0
    """The number of earlier calls that the cost pays for as well."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime waits for a permission. `form` says how the answer is written."""

    request_id: str
    call: CallMade
    form: str = ""
    parent: str = ""


class Remark(msgspec.Struct, frozen=True):
    """A notice for the person; the run goes on."""

    kind: str
    message: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run, as the runtime itself says it: `error` is empty if it succeeded."""

    error: str = ""
    status: int | None = None
    """The status that the model service answered with."""
    turns: int | None = None
    duration_ms: int | None = None
    cost_usd: float | None = None
    premium_requests: float | None = None


Item = (
    SessionOpened
    | ModelNamed
    | TurnBegan
    | Piece
    | Said
    | CallBegan
    | CallEnded
    | Spent
    | Asked
    | Remark
    | Ended
)
"""Something that a runtime's lines say, the same for all runtimes."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `Asked`; `args` are the arguments to run with, in the runtime's words."""

    allowed: bool
    args: JsonObject = {}
    reason: str = ""


class Reader(Protocol):
    """Reads the lines of one run. Unknown lines say nothing; missing fields do no harm."""

    def read(self, event: JsonObject) -> Iterable[Item]:
        """Return what a line says."""
        ...

    def finish(self) -> Iterable[Item]:
        """Return what is left to say when the program has ended."""
        ...


class AgentRuntime(ABC):
    """A runtime: constants and pure functions; it starts nothing itself."""

    name: ClassVar[str]
    title: ClassVar[str]
    program: ClassVar[str]
    """The name of its program on PATH."""
    install: ClassVar[str]
    """The command that installs it."""
    capabilities: ClassVar[Capabilities]
    keys: ClassVar[tuple[str, ...]] = ()
    """The variables with keys that its own models need; it gets no others."""
    state: ClassVar[tuple[str, ...]] = ()
    """Folders below the home directory that it must be able to write; created for a sandbox."""
    state_files: ClassVar[tuple[str, ...]] = ()
    """Files below the home directory that it must be able to write, if they exist."""
    tools: ClassVar[Mapping[str, RenamedTool]] = {}
    harmless: ClassVar[frozenset[str]] = frozenset()
    """Its tools that touch nothing outside its own session."""
    fallback: ClassVar[tuple[str, ...]] = ()
    """Another program and leading arguments that may stand in for it."""
    needed_flags: ClassVar[tuple[str, ...]] = ()
    """The flags that a stand-in must have."""
    list_arguments: ClassVar[tuple[str, ...]] = ()
    """The arguments that print its models, one a line."""
    caution: ClassVar[str] = ""
    """A warning for people who are about to change its settings."""

    @abstractmethod
    def arguments(self, job: Job) -> list[str]:
        """Return the arguments after the program."""

    def environment(self, job: Job) -> Mapping[str, str]:
        """Return the variables that it needs besides the person's own."""
        return {}

    def input(self, job: Job) -> bytes:
        """Return what it is sent first: the prompt."""
        return with_system(job.system, job.prompt).encode("utf-8", "replace")

    @property
    def keeps_input_open(self) -> bool:
        """True if it reads answers after the prompt, until its result."""
        return self.capabilities.asks_permission

    @abstractmethod
    def reader(self) -> Reader:
        """Return a new reader of what it prints."""

    def answer(self, asked: Asked, permit: Permit) -> bytes:
        """Return the line that answers a request for permission; one that never asks gets none."""
        return b""

    async def fetch_models(self, env: Mapping[str, str]) -> list[str] | None:
        """Ask its service for its models, if its program prints none; None if that fails."""
        return None

    def is_partial(self, event: JsonObject) -> bool:
        """Return True for lines that a later line repeats as a whole, such as pieces of text."""
        return False

    def rename(self, call: CallMade) -> tuple[str, JsonObject]:
        """Return a call in our words."""
        renamed = self.tools.get(call.name)
        if renamed is None:
            return call.name, call.args
        return renamed.tool, renamed.rename(call.args)

    def restore(self, name: str, args: JsonObject) -> JsonObject:
        """Return our arguments of a call of the runtime's tool `name` in the runtime's words."""
        renamed = self.tools.get(name)
        return args if renamed is None else renamed.restore(args)


def with_system(system: str, prompt: str | None) -> str:
    """Return a prompt with instructions before it, for programs that take no system prompt."""
    text = prompt or ""
    return f"<system>\n{system}\n</system>\n\n{text}" if system else text


def effort_without_max(effort: str | None) -> str | None:
    """Return an effort for programs whose highest one is `xhigh`."""
    return "xhigh" if effort == "max" else effort


def text_of(value: Any) -> str:
    """Return a text; other values say nothing."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> JsonObject:
    """Return an object; other values are empty ones."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[JsonObject]:
    """Return the objects of a list; other values are empty lists."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count_of(value: Any) -> int | None:
    """Return a number of tokens or milliseconds, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 1e15 else None


def amount_of(value: Any) -> float | None:
    """Return an amount of money, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None


def add_up(*counts: int | None) -> int | None:
    """Return the sum of the counts that are known, or None if none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def join_text(content: Any) -> str:
    """Return the text of a message or a tool result: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(text for part in list_of(content) if (text := text_of(part.get("text"))))


def nothing() -> Iterator[Item]:
    """Return no items."""
    return iter(())
