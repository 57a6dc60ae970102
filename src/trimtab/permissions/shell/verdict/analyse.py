"""Reads a shell command and says what it would do."""

from functools import lru_cache

from trimtab.permissions.shell.grammar.dialects import differs
from trimtab.permissions.shell.grammar.syntax import Effort, Unparsable
from trimtab.permissions.shell.verdict.analysis import Analysis, Found
from trimtab.permissions.shell.verdict.judge import Judge
from trimtab.permissions.shell.verdict.skim import skim

LONGEST = 300_000
STEPS = 20_000
"""The worst texts we know take about half a second with these."""
_UNFINISHED = ("it is too long", "it takes too long to read", "it is nested too deeply")
POWERSHELL = frozenset(("powershell", "pwsh", "ps1", "cmd"))


@lru_cache(128)
def analyse(text: str, cwd: str, home: str = "", shell: str = "bash") -> Analysis:
    """Read a command as the shell would. Never raises; what cannot be read is said in the result.

    The result is shared: do not change it.
    """
    analysis = Analysis()
    if shell.lower() in POWERSHELL:
        analysis.problem = "it is for PowerShell, which is not analysed"
        word = text.split(None, 1)[:1]
        analysis.commands += [
            Found(identifier=name, read_only=False, base=name.lower()) for name in word
        ]
        return analysis
    try:
        Judge(analysis, cwd, home, Effort(STEPS)).read(text[:LONGEST])
    except Unparsable as problem:
        analysis.problem = str(problem)
    except RecursionError:
        analysis.problem = "it is nested too deeply"
    if len(text) > LONGEST:
        analysis.problem = "it is too long"
    if analysis.problem in _UNFINISHED:
        analysis.commands += skim(text)
    if doubt := differs(text, shell):
        analysis.problem = analysis.problem or doubt
    return analysis
