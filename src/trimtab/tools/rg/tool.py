"""The `rg` tool: the same as `grep`, for models that know ripgrep."""

from trimtab.tools.description import describe
from trimtab.tools.search import Search

TOOL = Search("rg", describe(__file__))
