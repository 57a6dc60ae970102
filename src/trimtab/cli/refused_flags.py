"""Flags of Copilot CLI that this program knows and cannot serve, each with the reason."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.cli.flags import Kind

LATER = "it is not part of this version yet; leave it out"

REFUSED: "tuple[tuple[str, Kind, str], ...]" = (
    ("--share-gist", "switch", "gists need GitHub's service; use --share=FILE"),
    ("--connect", "optional", "remote sessions need GitHub's service; use --resume"),
    ("--remote", "switch", "remote steering needs GitHub's service; leave it out"),
    ("--acp", "switch", LATER),
    ("--disable-mcp-server", "list", LATER),
    ("--add-github-mcp-tool", "list", LATER),
    ("--add-github-mcp-toolset", "list", LATER),
    ("--enable-all-github-mcp-tools", "switch", LATER),
    ("--banner", "switch", "there is no banner; leave it out"),
    ("--screen-reader", "switch", "output is plain text already; leave it out"),
    ("--mouse", "optional", "there is no full-screen interface; leave it out"),
    ("--bash-env", "optional", LATER),
)
