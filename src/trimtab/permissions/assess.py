"""Reads a script for the decision: by our own grammar, and by the assessor of whoever embeds us.

Such an assessor makes a decision stricter, or describes a language that we do not read. It cannot
take away what our own reading of a shell's script found, so rules that deny hold.
"""

import os
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from trimtab.contracts.assessment import Assess, AssessedCommand, Assessment, one_command
from trimtab.contracts.permission import Policy
from trimtab.permissions.recoverable import drop_recoverable
from trimtab.permissions.shell.programs.carriers import SHELLS
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.analysis import Analysis, Found


class Assessed(Analysis, kw_only=True):
    """An analysis in which an assessor had a say."""

    offers: bool = True

    @property
    def can_be_offered(self) -> bool:
        return self.offers and super().can_be_offered


def read_script(text: str, policy: Policy, interpreter: str = "bash") -> Analysis:
    """Return what a script would do. Never raises; the result is shared: do not change it."""
    if interpreter.lower() not in SHELLS:
        return _read_other(text, policy, interpreter)
    own = drop_recoverable(analyse(text, policy.cwd, policy.home, interpreter), policy)
    if policy.assess is None:
        return own
    said = _ask(policy.assess, text, interpreter)
    if isinstance(said, str):
        return msgspec.structs.replace(own, problem=own.problem or said)
    return _combine(own, said, policy.cwd)


def forget_scripts() -> None:
    """Have scripts read anew: what is on the disk may have changed since they were."""
    analyse.cache_clear()


def _read_other(text: str, policy: Policy, interpreter: str) -> Analysis:
    said = _ask(policy.assess or one_command, text, interpreter)
    if isinstance(said, str):
        return Analysis(problem=said)
    problem = None if policy.assess else f"it is for {interpreter}, which is not analysed"
    return _combine(Analysis(problem=problem), said, policy.cwd)


@lru_cache(128)
def _ask(assess: Assess, text: str, interpreter: str) -> Assessment | str:
    """Return the assessment, or why it failed. Cached: what is asked about is what runs."""
    identifier = (text.split(None, 1) or [interpreter])[0]
    try:
        said = assess(text, interpreter, identifier)
    except Exception as error:
        return f"the assessor failed ({error!r})"
    return said if said.commands else "the assessor found no command in it"


def _combine(own: Analysis, said: Assessment, cwd: str) -> Assessed:
    changing = {command.identifier for command in said.commands if not command.read_only}
    commands = [
        msgspec.structs.replace(
            found, read_only=found.read_only and found.identifier not in changing
        )
        for found in own.commands
    ]
    known = {found.identifier for found in commands}
    commands += [_to_found(named) for named in said.commands if named.identifier not in known]
    paths = [os.path.join(cwd, os.path.expanduser(path)) for path in said.possible_paths]
    fields = {name: getattr(own, name) for name in own.__struct_fields__}
    fields |= {
        "commands": commands,
        "possible_paths": _union(own.possible_paths, said.possible_paths),
        "possible_urls": _union(own.possible_urls, said.possible_urls),
        "reads": own.reads if changing else _union(own.reads, paths),
        "touched": _union(own.touched, paths) if changing else own.touched,
    }
    if said.has_write_file_redirection and not own.targets:
        fields["targets"] = [None]
    return Assessed(**fields, offers=said.can_offer_session_approval)


def _to_found(command: AssessedCommand) -> Found:
    return Found(
        identifier=command.identifier,
        read_only=command.read_only,
        base=os.path.basename(command.identifier),
        words=tuple(command.identifier.split()),
    )


def _union(first: Iterable[str], second: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*first, *second)))
