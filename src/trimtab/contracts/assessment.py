"""What a script would do, as an assessor tells it; programs that embed sessions may bring one."""

from collections.abc import Callable

import msgspec


class AssessedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a script, under the name that rules know it by."""

    identifier: str
    read_only: bool = False


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an assessor says about a script."""

    commands: tuple[AssessedCommand, ...]
    possible_paths: tuple[str, ...] = ()
    possible_urls: tuple[str, ...] = ()
    has_write_file_redirection: bool = False
    can_offer_session_approval: bool = False


Assess = Callable[[str, str, str], Assessment]
"""Given a script, the name of its interpreter, and the identifier under which the whole script
goes where its commands are not told apart. Its answer must depend on nothing else."""


def one_command(_script: str, _interpreter: str, identifier: str) -> Assessment:
    """The assessor for languages that nobody reads: one command, which may do anything."""
    return Assessment(commands=(AssessedCommand(identifier=identifier),))
