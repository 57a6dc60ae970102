"""Assessors: functions of an embedding program that tell what a script would do."""

from collections.abc import Callable

import msgspec


class AssessedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a script. `identifier` is the name that permission rules match."""

    identifier: str
    read_only: bool = False


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """An assessor's answer for one script."""

    commands: tuple[AssessedCommand, ...]
    possible_paths: tuple[str, ...] = ()
    possible_urls: tuple[str, ...] = ()
    has_write_file_redirection: bool = False
    can_offer_session_approval: bool = False


Assess = Callable[[str, str, str], Assessment]
"""Takes a script, the name of its interpreter, and the identifier that stands for the whole script
if its commands cannot be told apart. The answer must depend on nothing else."""


def one_command(_script: str, _interpreter: str, identifier: str) -> Assessment:
    """Assess a script in a language without a parser: one command that may do anything."""
    return Assessment(commands=(AssessedCommand(identifier=identifier),))
