"""The `glob` tool: finds files by the pattern of their paths."""

import os
import re
from collections.abc import Callable, Iterator, Sequence

from trimtab.contracts.globs import to_regex
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import FoundLines
from trimtab.tools.description import describe
from trimtab.tools.files import fail
from trimtab.tools.glob.pattern import depth, plain_name, split_base
from trimtab.tools.output import limit_output
from trimtab.tools.paths import LARGEST, TIMEOUT, WALK, read_access, refuse_search, search_paths


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
                    "description": "Directories, the root unless given",
                },
                "path": {"type": "string", "description": "The same for one directory"},
            },
            "required": ["pattern"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        base, _ = split_base(args["pattern"])
        places = [os.path.join(path, base) for path in search_paths(args)]
        return read_access({"paths": places}, ctx, f"Find files {args['pattern']}")

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
            # A type keeps other files out of the output; as a glob it would let in ignored ones.
            options += [f"--type-add=wanted:{name}", "--type=wanted"]
        lines: set[bytes] = set()
        notes: list[str] = []
        for path in paths:
            folder = ctx.workspace.resolve(os.path.join(path, base)).rstrip("/") + "/"
            if ctx.workspace.inspect(folder).kind == "directory":
                found = await ctx.workspace.search(
                    [*options, "--", folder],
                    seconds=TIMEOUT,
                    limit=LARGEST,
                    keep=matcher(regex, len(os.fsencode(folder))),
                )
                lines.update(found.lines)
                notes += remarks(found)
        shown = [shorten(line, ctx.workspace.root) for line in sorted(lines)]
        text = "\n".join([*(shown or ["No files matched the pattern."]), *notes])
        return ToolResult(text=await limit_output(text, ctx))


def matcher(regex: re.Pattern[bytes], start: int) -> Callable[[bytes], bool]:
    """Whether a path matches from a position on."""
    return lambda line: regex.fullmatch(line, start) is not None


def remarks(found: FoundLines) -> Iterator[str]:
    if found.stopped:
        yield f"<these are not all files: {found.stopped}; narrow the pattern>"
    if found.error:
        yield f"<not everything could be searched: {found.error[:500]}>"


def shorten(line: bytes, root: str) -> str:
    """A found path relative to the root with `./`, or whole when it lies elsewhere."""
    path = line.decode("utf-8", "replace")
    start = root.rstrip("/") + "/"
    return f"./{path.removeprefix(start)}" if path.startswith(start) else path


TOOL = Glob()
