"""The `grep` tool: searches in files by regular expression."""

from trimtab.tools.description import describe
from trimtab.tools.search import Search

TOOL = Search("grep", describe(__file__))
