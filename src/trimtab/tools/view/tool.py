"""The `view` tool: shows files with line numbers, directories and images."""

from collections.abc import Sequence

from trimtab.contracts.images import image_type
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.files import fail, missing, refuse_path, system_failure
from trimtab.tools.text import BOMS, find_wide, first_view

MAX_ENTRIES = 1000
MAX_READ = 16 * 1024 * 1024
"""Files up to this size are read completely, even for a few lines."""
MAX_FORCED = 2 * 1024 * 1024
"""The limit of `forceReadLargeFiles`."""


class View:
    spec = ToolSpec(
        name="view",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path of the file or directory"},
                "view_range": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 2,
                    "maxItems": 2,
                    "description": "First and last line to show, from 1; -1 for the end",
                },
                "forceReadLargeFiles": {
                    "type": "boolean",
                    "description": "Show a large file completely",
                },
            },
            "required": ["path"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        path = ctx.workspace.resolve(args["path"])
        intention = f"View {args['path']}"
        return [Access(kind="read", target=path, intention=intention, mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name = args["path"]
        path = ctx.workspace.resolve(name)
        info = ctx.workspace.inspect(path)
        try:
            if info.kind == "directory":
                return view_directory(name, path, ctx)
            if refusal := refuse_path(name, info):
                return refusal
            if info.size > MAX_READ:
                return await view_part(args, path, info.size, ctx)
            data = (await ctx.workspace.read(path)).data
        except FileNotFoundError:
            return missing(name)
        except OSError as error:
            return system_failure(name, error)
        return view_content(args, path, data, ctx)


def find_limit(forced: bool, ctx: ToolContext) -> int:
    return min(MAX_FORCED, ctx.hard_limit) if forced else max(ctx.output_limit, 1024)


def view_directory(name: str, path: str, ctx: ToolContext) -> ToolResult:
    listing = ctx.workspace.list(path, MAX_ENTRIES)
    if not listing.names:
        return ToolResult(text=f"Directory {name} is empty.")
    more = listing.total - len(listing.names)
    rest = (
        f"\n<{count(more, 'more entry', 'more entries')} not shown; use glob to find files>"
        if more
        else ""
    )
    return ToolResult(text="\n".join(listing.names) + rest)


def view_content(args: Args, path: str, data: bytes, ctx: ToolContext) -> ToolResult:
    name, view_range = args["path"], args.get("view_range")
    forced = bool(args.get("forceReadLargeFiles"))
    special = view_image(name, data) if image_type(data) else view_notebook(args, path, data, ctx)
    if special is not None:
        return special
    if is_binary(data):
        return refuse_binary(name, len(data))
    if view_range is None and len(data) > find_limit(forced, ctx):
        return refuse_large(len(data), forced)
    ctx.workspace.remember(path, data)
    lines = first_view(data).shown().split("\n")
    if view_range is None:
        return ToolResult(text=number(lines, 1))
    first, last = view_range[0], len(lines) if view_range[1] == -1 else view_range[1]
    if not 1 <= first <= min(last, len(lines)):
        return fail(
            f"view_range {view_range} is invalid: {name} has {count(len(lines), 'line')}. Give "
            "[first, last] with 1 <= first <= last, or -1 for last.",
            "Invalid view_range",
        )
    chosen = lines[first - 1 : last]
    return ToolResult(text=cut(chosen, first, find_limit(forced, ctx)))


def view_notebook(args: Args, path: str, data: bytes, ctx: ToolContext) -> ToolResult | None:
    """Return the cells of a notebook; None for other files, and if lines are asked for."""
    if args.get("view_range") is not None or not path.endswith(".ipynb"):
        return None
    from trimtab.tools.notebook_view import view_cells

    limit = find_limit(bool(args.get("forceReadLargeFiles")), ctx)
    shown = view_cells(args["path"], data, limit)
    if shown is None:
        return None
    ctx.workspace.remember(path, data)
    return ToolResult(text=shown)


async def view_part(args: Args, path: str, size: int, ctx: ToolContext) -> ToolResult:
    """Show a range of lines of a file that is too large to read completely."""
    name, view_range = args["path"], args.get("view_range")
    forced = bool(args.get("forceReadLargeFiles"))
    if view_range is None:
        return refuse_large(size, forced)
    first, last = view_range
    if first < 1 or (last != -1 and last < first):
        return fail(f"view_range {view_range} is invalid: give [first, last] from 1 on.")
    limit = find_limit(forced, ctx)
    part = await ctx.workspace.read_lines(path, first, None if last == -1 else last, 4 * limit)
    if is_binary(part.data) or part.data.startswith(tuple(bom for bom, _ in BOMS[1:])):
        return refuse_binary(name, size)
    if not part.data:
        return fail(f"{name} has fewer than {count(first, 'line')}.", "Invalid view_range")
    lines = first_view(part.data).shown().removesuffix("\n").split("\n")
    return ToolResult(text=cut(lines, first, limit))


def number(lines: Sequence[str], first: int) -> str:
    text = "\n".join([f"{index}. {line}" for index, line in enumerate(lines, first)])
    return text[:-1] if lines[-1] == "" else text


def cut(lines: Sequence[str], first: int, limit: int) -> str:
    """Return numbered lines up to a size, and where to continue."""
    text = number(lines, first)
    if len(text) <= limit:
        return text
    end = text.rfind("\n", 0, limit)
    if end < 0:
        length = count(len(lines[0]), "character")
        rest = f"line {first} has {length}; use bash (cut -c) to see more"
        return f"{text[:limit]}\n<cut here: {rest}>"
    shown = text.count("\n", 0, end) + 1
    return f"{text[:end]}\n<cut here: continue with view_range [{first + shown}, …]>"


def view_image(name: str, data: bytes) -> ToolResult:
    from trimtab.tools.view.image import image_result

    return image_result(name, data)


def is_binary(data: bytes) -> bool:
    if b"\0" not in data[:8192] or data.startswith(tuple(bom for bom, _ in BOMS)):
        return False
    return not find_wide(data)


def refuse_binary(name: str, size: int) -> ToolResult:
    from trimtab.tools.output import kilobytes

    return fail(
        f"{name} is a binary file ({kilobytes(size)}) and cannot be shown as text. Use bash to "
        "look into it, for example with file, strings or xxd.",
        "Binary file",
    )


def refuse_large(size: int, forced: bool) -> ToolResult:
    from trimtab.tools.output import kilobytes

    force = "" if forced else ", or set forceReadLargeFiles"
    return ToolResult(
        text=f"File too large to read at once ({kilobytes(size)}). Consider using the grep tool to "
        f"search within the file, or view with view_range to read specific sections{force}."
    )


TOOL = View()
