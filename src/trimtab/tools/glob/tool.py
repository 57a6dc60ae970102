"""The `glob` tool: finds files whose paths match a pattern."""

import os
import re
from collections.abc import Callable, Iterator, Sequence

from trimtab.contracts.globs import to_regex
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import FoundLines
from trimtab.tools.description import describe
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output
from trimtab.tools.paths import MAX_OUTPUT, TIMEOUT, WALK, read_access, refuse_search, search_paths

WILDCARDS = frozenset("*?[{")


class Glob:
    spec = ToolSpec(
        name="glob",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Pattern of the paths"},
                "paths": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Directories; default: the root",
                },
                "path": {"type": "string", "description": "A single directory"},
            },
            "required": ["pattern"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        base, _ = split_base(args["pattern"])
        folders = [os.path.join(path, base) for path in search_paths(args)]
        return read_access({"paths": folders}, ctx, f"Find files {args['pattern']}")

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        paths = search_paths(args)
        if refusal := refuse_search(paths, ctx):
            return refusal
        base, pattern = split_base(args["pattern"])
        try:
            regex = re.compile(to_regex(pattern).encode())
        except (re.error, UnicodeEncodeError) as error:
            return fail(f"The pattern {args['pattern']} is invalid: {error}.", "Invalid pattern")
        options = ["--files", *WALK]
        if levels := depth(pattern):
            options.append(f"--max-depth={levels}")
        if name := plain_name(pattern):
            # A type excludes other files from the output; a glob would include ignored files.
            options += [f"--type-add=wanted:{name}", "--type=wanted"]
        lines: set[bytes] = set()
        notes: list[str] = []
        for path in paths:
            folder = ctx.workspace.resolve(os.path.join(path, base)).rstrip("/") + "/"
            if ctx.workspace.inspect(folder).kind == "directory":
                found = await ctx.workspace.search(
                    [*options, "--", folder],
                    seconds=TIMEOUT,
                    limit=MAX_OUTPUT,
                    keep=matcher(regex, len(os.fsencode(folder))),
                )
                lines.update(found.lines)
                notes += remarks(found)
        shown = [shorten(line, ctx.workspace.root) for line in sorted(lines)]
        text = "\n".join([*(shown or ["No files matched the pattern."]), *notes])
        return ToolResult(text=await limit_output(text, ctx))


def split_base(pattern: str) -> tuple[str, str]:
    """Return the folders at the beginning of a pattern without wildcards, and the rest."""
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    parts = pattern.split("/")
    fixed = 0
    while fixed < len(parts) - 1 and not WILDCARDS.intersection(parts[fixed]):
        fixed += 1
    base = "/".join(parts[:fixed])
    return base or ("/" if fixed else ""), "/".join(parts[fixed:])


def depth(pattern: str) -> int | None:
    """Return how many levels deep a pattern can match, or None without a limit."""
    return None if "**" in pattern or "{" in pattern else pattern.count("/") + 1


def plain_name(pattern: str) -> str | None:
    """Return the last part of a pattern if ripgrep understands it as a pattern of file names."""
    name = pattern.rpartition("/")[2]
    simple = name.count("{") == name.count("}") and not set("[\\:").intersection(name)
    return name if simple and name.strip("*") else None


def matcher(regex: re.Pattern[bytes], start: int) -> Callable[[bytes], bool]:
    """Return a function that matches a path from a position on."""
    return lambda line: regex.fullmatch(line, start) is not None


def remarks(found: FoundLines) -> Iterator[str]:
    if found.stopped:
        yield f"<these are not all files: {found.stopped}; narrow the pattern>"
    if found.error:
        yield f"<not everything could be searched: {found.error[:500]}>"


def shorten(line: bytes, root: str) -> str:
    """Return a path relative to the root with `./`; unchanged if it is outside."""
    path = line.decode("utf-8", "replace")
    start = root.rstrip("/") + "/"
    return f"./{path.removeprefix(start)}" if path.startswith(start) else path


TOOL = Glob()
