"""Makes a tool of a Python function: its hints are the schema, its docstring the description."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar, overload

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.output import limit_output

Kind = Literal["custom-tool", "none"]
Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "__trimtab_tool__"
OUTER = (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError)
"""What would end the whole program, or confuse who waits."""
LONGEST_NAME = 64


class Ended(Exception):
    """A function tried to end more than itself."""


class FunctionTool:
    """A function as a tool. `access` "none" says that it touches nothing one would ask about."""

    def __init__(self, function: Callable[..., Any], name: str = "", access: Kind = "custom-tool"):
        self.source = ""
        """Where it was found: a file, or what installed package."""
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
    """What somebody's coroutine gives; none of its exceptions ends more than the call."""
    task = asyncio.current_task()
    try:
        return await work
    except OUTER as error:
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise Ended(describe_end(error)) from error


async def run_in_thread(work: Callable[[], Any]) -> Any:
    """The same for a function. Its thread is not waited for at the end: it may never end."""
    import threading
    from contextvars import copy_context

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def tell(value: Any, error: Exception | None) -> None:
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
        except OUTER as error:
            problem = Ended(describe_end(error))
        except Exception as error:  # somebody else's code: it may raise anything
            problem = error
        with suppress(RuntimeError):  # nobody is there any more
            loop.call_soon_threadsafe(tell, value, problem)

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

    Its parameters need type hints; one annotated `ToolContext` is given the context of the call.
    It returns text, a `ToolResult`, or anything that can be written as JSON.
    """

    def mark(function: Function) -> Function:
        setattr(function, MARK, FunctionTool(function, name, access))
        return function

    return mark if function is None else mark(function)


def find_tools(namespace: dict[str, Any]) -> list[FunctionTool]:
    """The tools among the names of a module, each once."""
    found = (getattr(value, MARK, None) for value in namespace.values())
    return list({id(one): one for one in found if isinstance(one, FunctionTool)}.values())


def check_name(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    if not (plain.isascii() and plain.isalnum()) or len(name) > LONGEST_NAME:
        raise TypeError(f"{name!r} cannot be a tool's name: use letters, digits, _ and - (≤ 64).")
    return name


def read_signature(function: Callable[..., Any]) -> tuple[str, type[msgspec.Struct]]:
    """The name of the context parameter, if there is one, and the others as a struct."""
    import inspect
    from typing import get_type_hints

    hints = get_type_hints(function, include_extras=True)
    context, required, optional = "", list[Any](), list[Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__} takes any arguments, which no schema can say.")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{function.__name__} takes {name} by place only: leave the / out.")
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
    """A default as a struct takes it: what can change is made anew for each call."""
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
    """What is said of the function, and of each parameter under `Args:`."""
    import inspect

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
