"""The paths that a search tool searches, and the options of ripgrep that all searches share."""

from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.files import missing, refuse_path

# Ignore files are honoured, also outside git; `.git` is never searched.
WALK = ("--hidden", "--no-require-git", "--glob=!.git", "--color=never")
TIMEOUT = 20.0
MAX_OUTPUT = 4 * 1024 * 1024


def search_paths(args: Args) -> list[str]:
    """Return the `paths` or the `path` of a call, or the root."""
    given = args.get("paths") or ([args["path"]] if args.get("path") else [])
    return [path for path in given if path] or ["./"]


def read_access(args: Args, ctx: ToolContext, intention: str) -> list[Access]:
    return [
        Access(
            kind="read",
            target=ctx.workspace.resolve(path),
            intention=intention,
            mutates=False,
        )
        for path in search_paths(args)
    ]


def refuse_search(paths: list[str], ctx: ToolContext) -> ToolResult | None:
    """Return a failure if a path is missing or reading it could block, else None."""
    for path in paths:
        info = ctx.workspace.inspect(ctx.workspace.resolve(path))
        if info.kind == "missing":
            return missing(path)
        if info.kind == "other":
            return refuse_path(path, info)
    return None


def argument(path: str, ctx: ToolContext) -> str:
    """Return a path for ripgrep, which prints results with the same beginning."""
    if path.startswith("~"):
        return ctx.workspace.resolve(path)
    return f"./{path}" if path.startswith("-") else path
