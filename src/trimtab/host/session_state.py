"""The state of a session that is stored or open elsewhere: requests, open questions, queue."""

from collections.abc import Iterable

import msgspec

from trimtab.contracts.events.codec import decode
from trimtab.host.metadata import RequestDetails, SessionMetadata, read_metadata
from trimtab.host.part_fold import PartFold
from trimtab.host.request_fold import RequestFold
from trimtab.permissions.kinds import show_request
from trimtab.session.folder import SessionFolder
from trimtab.session.lease import find_owner
from trimtab.session.records import read_records
from trimtab.tools.categories import find_category

FACTS = ("mode", "model", "mode_instructions", "branch", "commit_before", "commit_after")
"""The fields of a request that only the metadata file has."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A question that nobody has answered; `tool_call_id` is the call that waits for it."""

    request_id: str
    kind: str
    question: str
    tool_call_id: str = ""


class WaitingPrompt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A prompt in the queue, or one for the work that goes on if it is `steering`."""

    id: str
    text: str
    steering: bool


class SessionState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The metadata of a session, and what waits for somebody in it."""

    metadata: SessionMetadata
    questions: tuple[OpenQuestion, ...]
    queue: tuple[WaitingPrompt, ...]


def read_state(folder: SessionFolder) -> SessionState:
    """Fold the log of a session, and add the facts that only its metadata file has."""
    metadata = read_metadata(folder) or SessionMetadata(session_id=folder.id)
    stored, metadata.requests = metadata.requests, {}
    requests, parts = RequestFold(metadata.requests), PartFold()
    for record in read_records(folder.events):
        event = decode(record.line)
        requests.apply(event)
        parts.apply(event)
    is_open = find_owner(folder.path) is not None
    for key, request in metadata.requests.items():
        if key in stored:
            copy_facts(stored[key], request)
        if request.state == "running" and not is_open:
            request.state = "interrupted"
    questions = tuple(
        OpenQuestion(
            request_id=part.request_id,
            kind=part.kind,
            question=show_request(part.request).question
            if part.kind == "permission"
            else str(part.request.get("question") or part.request.get("summary") or ""),
            tool_call_id=part.call_id,
        )
        for part in parts.open_questions
    )
    queue = tuple(
        WaitingPrompt(id=part.key.removeprefix("queue "), text=part.text, steering=part.steering)
        for part in parts.waiting_prompts
    )
    return SessionState(metadata=metadata, questions=questions, queue=queue)


def copy_facts(stored: RequestDetails, request: RequestDetails) -> None:
    for name in FACTS:
        setattr(request, name, getattr(stored, name))
    if request.state == "running" and stored.state in ("completed", "failed"):
        request.state, request.error, request.ended = stored.state, stored.error, stored.ended


def describe_state(state: SessionState) -> Iterable[str]:
    """Yield a few lines for each request, then the open questions and the queue."""
    for number, request in enumerate(state.metadata.requests.values(), 1):
        yield f"{number:>3}  {request.state:<11}  {request.started or request.queued}"
        yield f"     {request.prompt}"
        yield from (f"     {line}" for line in describe_request(request))
    for question in state.questions:
        yield f"  ?  {question.question}"
    for waiting in state.queue:
        yield f"  +  {waiting.text}"


def describe_request(request: RequestDetails) -> Iterable[str]:
    """Yield lines with the facts about a request that are known."""
    if request.error:
        yield f"error: {request.error}"
    who = [request.mode, request.model]
    if request.mode_instructions is not None:
        who.append(f"agent {request.mode_instructions.name}")
    if any(who):
        yield " · ".join(filter(None, who))
    if request.tool_calls:
        names = list(request.tool_calls.values())
        counts = [f"{name} {names.count(name)} ({find_category(name)})" for name in {*names}]
        yield f"tools: {', '.join(sorted(counts))}"
    if request.commit_before != request.commit_after:
        yield f"{request.branch}: {request.commit_before[:12]} → {request.commit_after[:12]}"
    if request.checkpoints.start:
        yield f"checkpoints: {request.checkpoints.start} {request.checkpoints.end}".rstrip()
    if request.files_changed_by_others:
        yield f"changed by others meanwhile: {request.files_changed_by_others}"
    for url in request.pull_requests:
        yield f"pull request: {url}"
