"""Makes a tool from a Python function, with its type hints as schema and its docstring."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Literal, TypeVar, get_type_hints, overload

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.output import limit_output

Kind = Literal["custom-tool", "none"]
Function = TypeVar("Function", bound=Callable[..., Any])
ATTRIBUTE = "__trimtab_tool__"
"""The attribute of a function that holds its tool."""
CONTAINED = (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError)
"""Exceptions that would end the program or the event loop."""
MAX_NAME = 64


class FunctionExit(Exception):
    """Raised when a function tried to end the program or its task."""


class FunctionTool:
    """A function as a tool. `access="none"` declares that a call needs no permission."""

    def __init__(self, function: Callable[..., Any], name: str = "", access: Kind = "custom-tool"):
        self.source = ""
        """The file or the installed package that defines it."""
        self._function = function
        self._access = access
        self._context, self._params = read_signature(function)
        description, about = read_docstring(function.__doc__ or "")
        self.spec = ToolSpec(
            name=check_name(name or function.__name__),
            description=description or f"Calls {function.__name__}.",
            parameters=build_schema(self._params, about),
        )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        name = self.spec.name
        if self._access == "none":
            return [Access(kind="none", target=name, mutates=False)]
        return [Access(kind="custom-tool", target=name, intention=f"Call {name}")]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        try:
            values = msgspec.convert(dict(args), self._params, strict=False)
        except msgspec.ValidationError as error:
            return ToolResult(text=f"The arguments do not fit: {error}", kind="failure")
        given = {field: getattr(values, field) for field in self._params.__struct_fields__}
        if self._context:
            given[self._context] = ctx
        if asyncio.iscoroutinefunction(self._function):
            value = await await_contained(self._function(**given))
        else:
            value = await run_in_thread(partial(self._function, **given))
        result = to_result(value)
        return msgspec.structs.replace(result, text=await limit_output(result.text, ctx))


async def await_contained(work: Awaitable[Any]) -> Any:
    """Await a coroutine of other people; none of its exceptions ends more than the call."""
    task = asyncio.current_task()
    try:
        return await work
    except CONTAINED as error:
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise FunctionExit(describe_end(error)) from error


async def run_in_thread(work: Callable[[], Any]) -> Any:
    """Run a function of other people in a daemon thread, because it may never end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def finish(value: Any, error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def run() -> None:
        value: Any = None
        problem: Exception | None = None
        try:
            value = work()
        except CONTAINED as error:
            problem = FunctionExit(describe_end(error))
        except Exception as error:  # code of other people may raise anything
            problem = error
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(finish, value, problem)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return await answer


def describe_end(error: BaseException) -> str:
    return f"The function ended with {type(error).__name__} {error}".rstrip() + "."


@overload
def tool(function: Function) -> Function: ...
@overload
def tool(*, name: str = "", access: Kind = "custom-tool") -> Callable[[Function], Function]: ...


def tool(
    function: Function | None = None, *, name: str = "", access: Kind = "custom-tool"
) -> Function | Callable[[Function], Function]:
    """Mark a function, async or not, as a tool; it can still be called as before.

    Its parameters need type hints; one annotated `ToolContext` receives the context of the call.
    It returns text, a `ToolResult`, or anything that can be written as JSON.
    """

    def mark(function: Function) -> Function:
        setattr(function, ATTRIBUTE, FunctionTool(function, name, access))
        return function

    return mark if function is None else mark(function)


def find_tools(namespace: dict[str, Any]) -> list[FunctionTool]:
    """Return the tools in the namespace of a module, each once."""
    found = (getattr(value, ATTRIBUTE, None) for value in namespace.values())
    return list({id(tool): tool for tool in found if isinstance(tool, FunctionTool)}.values())


def check_name(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    if not (plain.isascii() and plain.isalnum()) or len(name) > MAX_NAME:
        raise TypeError(f"{name!r} cannot be a tool's name: use letters, digits, _ and - (≤ 64).")
    return name


def read_signature(function: Callable[..., Any]) -> tuple[str, type[msgspec.Struct]]:
    """Return the name of the context parameter, or "", and the others as a struct."""
    hints = get_type_hints(function, include_extras=True)
    context, required, optional = "", list[Any](), list[Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__} takes *args or **kwargs: name its parameters.")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{function.__name__} takes {name} by position only: remove the /.")
        if hints.get(name) is ToolContext:
            context = name
        elif name not in hints:
            raise TypeError(f"The parameter {name} of {function.__name__} needs a type hint.")
        elif parameter.default is parameter.empty:
            required.append((name, hints[name]))
        else:
            optional.append((name, hints[name], as_field(parameter.default)))
    return context, msgspec.defstruct(function.__name__, [*required, *optional], kw_only=True)


def as_field(default: Any) -> Any:
    """Return a default for a struct field; mutable ones are copied for each call."""
    if isinstance(default, list | dict | set):
        return msgspec.field(default_factory=default.copy)
    return default


def build_schema(params: type[msgspec.Struct], about: dict[str, str]) -> dict[str, Any]:
    (_,), components = msgspec.json.schema_components([params], ref_template="#/$defs/{name}")
    schema = components.pop(params.__name__)
    schema.pop("title", None)
    for name, text in about.items():
        if name in schema["properties"]:
            schema["properties"][name].setdefault("description", text)
    return {**schema, "$defs": components} if components else schema


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description of a function, and those of its parameters under `Args:`."""
    head, _, rest = inspect.cleandoc(text).partition("\nArgs:\n")
    about: dict[str, str] = {}
    name = ""
    for line in rest.split("\n"):
        if line and not line.startswith(" "):
            break
        before, colon, after = line.strip().partition(":")
        if colon and not line.startswith("        ") and before.split(" ")[0].isidentifier():
            name = before.split(" ")[0]
            about[name] = after.strip()
        elif name and line.strip():
            about[name] += f" {line.strip()}"
    return head.strip(), about


def to_result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(text=value)
    return ToolResult(text="Done." if value is None else msgspec.json.encode(value).decode())
