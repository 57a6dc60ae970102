"""Checks texts that the shell evaluates as arithmetic: they may set variables, and run commands."""

from collections.abc import Iterable, Sequence

from trimtab.permissions.shell.grammar.arithmetic import name_evaluated, runs_if_evaluated
from trimtab.permissions.shell.grammar.builtins import find_builtin
from trimtab.permissions.shell.grammar.syntax import Script
from trimtab.permissions.shell.grammar.words import Argument, Variables
from trimtab.permissions.shell.programs.variables import is_hazardous
from trimtab.permissions.shell.verdict.analysis import Analysis

_COMPARING = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


def check_computed(into: Analysis, script: Script, variables: Variables) -> None:
    """Check what a script computes with: a value is code, and must not come from elsewhere."""
    check_assigned(into, script.computed, variables)
    for name in script.computed:
        if not variables.is_number(name):
            into.add_hazards(f"arithmetic evaluates {name}, which is not known")
    if script.substitutes:
        into.add_hazards("arithmetic evaluates the output of a command")
    evaluates = any(c.is_test or find_builtin(c.words)[0] == "let" for c in script.commands)
    if script.computed or script.computes or evaluates:
        for command in script.commands:
            given = [a for word in command.words for a in variables.expand(word)]
            check_evaluated(into, given, variables)


def check_assigned(into: Analysis, texts: Iterable[str], variables: Variables) -> None:
    """Check texts that are evaluated; every name in them counts as assigned."""
    for name in name_evaluated(texts, variables):
        if is_hazardous(name, None):
            into.add_hazards(f"arithmetic may set {name}, which decides what runs")


def check_evaluated(into: Analysis, arguments: Sequence[Argument], variables: Variables) -> None:
    """Check the words of a command that may compare numbers."""
    texts = [argument.text for argument in arguments]
    if _COMPARING.intersection(texts):  # the operands of such a test are arithmetic
        check_assigned(into, texts, variables)
    for argument in arguments:
        if runs_if_evaluated(argument.text):
            into.add_hazards("a subscript in quotes runs commands")
