"""Has a model write commit messages, branch names and the texts of pull requests."""

import re
from collections.abc import Awaitable, Callable
from importlib.resources import files

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Run
from trimtab.loop.side_calls import SideCall, Writer, call_model

MAX_SUBJECT = 200
MAX_BRANCH = 60
_QUOTES = frozenset("\"'`")
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)

FindWriter = Callable[[], Awaitable[Writer | None]]


class Text(msgspec.Struct, frozen=True):
    """A subject or title, and the text below it."""

    subject: str
    body: str = ""


class Author:
    """Writes with the model for titles if one is configured, else with the model of the run."""

    def __init__(self, run: Run, find_writer: FindWriter) -> None:
        self._run = run
        self._find_writer = find_writer

    async def write_message(self, changes: str, earlier: str, hint: str) -> Text:
        """Return a commit message. Raises `ModelError`, and `UsageError` if it is empty."""
        parts = [f"<earlier_subjects>\n{earlier}\n</earlier_subjects>"] if earlier else []
        return read_text(await self._ask("commit", changes, hint, *parts))

    async def write_proposal(self, changes: str, hint: str) -> Text:
        return read_text(await self._ask("pull_request", changes, hint))

    async def write_branch(self, changes: str, hint: str) -> str:
        return read_branch(await self._ask("branch", changes, hint))

    async def _ask(self, purpose: str, changes: str, hint: str, *parts: str) -> str:
        instruction = files(__package__).joinpath("prompts", f"{purpose}.md").read_text("utf-8")
        wish = [f"<wish_of_the_person>\n{hint}\n</wish_of_the_person>"] if hint else []
        sections = (instruction.strip(), *parts, *wish, f"<changes>\n{changes}\n</changes>")
        text = "\n\n".join(sections)
        writer = await self._find_writer() or Writer.of(self._run)
        request = Request(
            model=writer.model, system="", messages=(UserMessage.of(text),), stream=False
        )
        call = SideCall(purpose=purpose, prompt=len(text) // 4, answer=300)
        return (await call_model(self._run, writer, call, request)).message.text


def read_text(reply: str) -> Text:
    """Return the subject and body that a model wrote. Raises `UsageError` if there is none."""
    reply = reply.strip()
    fenced = _FENCE.fullmatch(reply)
    subject, _, body = (fenced[1] if fenced else reply).strip().partition("\n")
    subject = _unquote(" ".join(subject.split()).removeprefix("# "))[:MAX_SUBJECT].rstrip()
    if not subject:
        raise UsageError("The model wrote no text; try again, or write one yourself.")
    return Text(subject, body.strip())


def _unquote(text: str) -> str:
    """Remove quotes around the whole text; those around its last word stay."""
    quote = text[:1]
    whole = len(text) > 1 and text.endswith(quote) and quote not in text[1:-1]
    return text[1:-1].strip() if quote in _QUOTES and whole else text


def read_branch(reply: str) -> str:
    """Return a valid branch name from a model's answer."""
    first = reply.strip().strip("`").partition("\n")[0]
    words = re.sub(r"[^a-z0-9/]+", "-", first.lower()).strip("-/")
    return re.sub(r"/{2,}", "/", words)[:MAX_BRANCH].rstrip("-/") or "changes"
