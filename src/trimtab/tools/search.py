"""Searches files by regular expression with ripgrep, for the tools `grep` and `rg`."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import FoundLines
from trimtab.tools.files import fail
from trimtab.tools.output import limit_output
from trimtab.tools.paths import (
    MAX_OUTPUT,
    TIMEOUT,
    WALK,
    argument,
    read_access,
    refuse_search,
    search_paths,
)

# A NUL ends the path in a line of ripgrep, because paths may contain colons.
CONTENT = (
    "--no-heading",
    "--field-match-separator=\\x00:",
    "--field-context-separator=\\x00-",
    "--max-columns=1000",
    "--max-columns-preview",
)
MODES: dict[str, tuple[str, ...]] = {
    "content": CONTENT,
    "files_with_matches": ("--files-with-matches",),
    "count": ("--count", "--null"),
}
FLAGS = {"-i": "--ignore-case", "multiline": "--multiline-dotall"}
COUNTS = {"-A": "--after-context", "-B": "--before-context", "-C": "--context"}
MAX_CONTEXT = 1_000_000
"""Lines of context. ripgrep refuses larger numbers."""
VALUES = {"glob": "--glob", "type": "--type"}


PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "Regular expression"},
        "paths": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Files or directories; default: the root",
        },
        "path": {"type": "string", "description": "A single path"},
        "output_mode": {"type": "string", "enum": list(MODES)},
        "glob": {"type": "string", "description": "Only files like this: *.ts"},
        "type": {"type": "string", "description": "Only files of this type: py, js"},
        "-i": {"type": "boolean", "description": "Ignore case"},
        "-n": {"type": "boolean", "description": "Show line numbers"},
        "-A": {"type": "integer", "description": "Lines after a match"},
        "-B": {"type": "integer", "description": "Lines before a match"},
        "-C": {"type": "integer", "description": "Lines around a match"},
        "head_limit": {"type": "integer", "description": "Show only the first N results"},
        "multiline": {"type": "boolean", "description": "Let a match span lines"},
    },
    "required": ["pattern"],
}


class Search:
    """A search tool, under the name that a family of models knows."""

    def __init__(self, name: str, description: str) -> None:
        self.spec = ToolSpec(name=name, description=description, parameters=PARAMETERS)

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return read_access(args, ctx, f"Search for {args['pattern']}")

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        paths = search_paths(args)
        if refusal := refuse_search(paths, ctx):
            return refusal
        if "\0" in args["pattern"] + args.get("glob", "") + args.get("type", ""):
            return fail("The pattern contains a NUL character, which text files do not have.")
        found = await ctx.workspace.search(
            [*arguments(args), "--", *(argument(path, ctx) for path in paths)],
            seconds=TIMEOUT,
            limit=MAX_OUTPUT,
        )
        if found.error and not found.lines:
            return fail(found.error)
        lines = arrange(found.lines, in_context="-A" in args or "-B" in args or "-C" in args)
        return ToolResult(text=await limit_output(present(lines, found, args), ctx))


def arguments(args: Args) -> list[str]:
    """Return the options of ripgrep for a call, with values joined by =."""
    mode = args.get("output_mode", "files_with_matches")
    options = [*WALK, *MODES[mode], "--with-filename", "--engine=auto"]
    if "\\r" not in args["pattern"] and "\r" not in args["pattern"]:
        options.append("--crlf")  # `$` matches before \r\n, too
    options += [flag for name, flag in FLAGS.items() if args.get(name)]
    if args.get("multiline") or "\\n" in args["pattern"]:
        options.append("--multiline")
    options.append("--line-number" if args.get("-n") else "--no-line-number")
    options += [f"{flag}={args[name]}" for name, flag in VALUES.items() if args.get(name)]
    counts = {flag: min(args.get(name, 0), MAX_CONTEXT) for name, flag in COUNTS.items()}
    options += [f"{flag}={count}" for flag, count in counts.items() if count > 0]
    return [*options, f"--regexp={args['pattern']}"]


def arrange(lines: Sequence[bytes], *, in_context: bool) -> list[bytes]:
    """Sort the lines by path, because ripgrep's threads print files in any order."""
    files: dict[bytes, list[bytes]] = {}
    gap = False
    for line in (raw.removesuffix(b"\r") for raw in lines):
        if line == b"--":
            gap = True
            continue
        path, _, rest = line.partition(b"\0")
        shown = files.setdefault(path, [])
        if gap and shown:
            shown.append(b"--")
        gap = False
        # In mode count, only a number follows the path.
        colon = b":" if rest.isdigit() else b""
        shown.append(path + colon + rest.replace(b"\0", b"", 1))
    arranged: list[bytes] = []
    for path in sorted(files):
        if in_context and arranged:
            arranged.append(b"--")
        arranged += files[path]
    return arranged


def present(lines: list[bytes], found: FoundLines, args: Args) -> str:
    """Return the text for the model, with a note on everything that is missing."""
    limit = args.get("head_limit", 0)
    limit = limit if limit > 0 else len(lines)
    text = b"\n".join(islice(lines, limit)).decode("utf-8", "replace") or "No matches found."
    if len(lines) > limit:
        text += f"\n<{count(len(lines) - limit, 'more line')}; raise head_limit to see more>"
    if found.stopped:
        text += f"\n<these are not all results: {found.stopped}; search a smaller part>"
    if found.error:
        text += f"\n<not everything could be searched: {found.error[:500]}>"
    return text
