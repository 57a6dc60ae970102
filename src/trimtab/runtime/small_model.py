"""What changes about a run when the small embedded model carries it."""

from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.run import Run
from trimtab.prompts.mentioned import MentionedFiles
from trimtab.providers.embedded.provider import NOTICE


def suit_small_model(run: Run) -> None:
    """Say what to expect, and put the files a prompt names into it."""
    run.session.emit(SessionInfo(info_type="embedded_model", message=NOTICE))
    run.processors = [*run.processors, MentionedFiles()]
