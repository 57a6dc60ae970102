"""Notices when a service had to read a prompt again that it had kept, and says why."""

from trimtab.contracts.events.context import PromptCacheBreak
from trimtab.contracts.messages import Message
from trimtab.contracts.provider import Request, Usage
from trimtab.contracts.run import SentPrompt, SessionPort

WORTH = 1024
"""Services keep nothing shorter than about so many tokens."""
KEPT = 0.5
"""Below this share of the last prompt a cache is called broken."""


def watch_cache(
    session: SessionPort, before: SentPrompt | None, request: Request, usage: Usage
) -> SentPrompt | None:
    """Compare a call with the one before it; what to compare the next one with.

    A break is told of only where the service had been keeping prompts, by its own count.
    """
    read = usage.cache_read_tokens
    if read is None or usage.input_tokens is None:
        return before
    after = SentPrompt(
        request.model,
        request.system,
        request.tools,
        tuple(request.messages),
        usage.input_tokens,
        bool(read or usage.cache_write_tokens) or (before is not None and before.caching),
    )
    if before is not None and before.caching and before.tokens >= WORTH:
        share = read / before.tokens
        if share < KEPT:
            session.emit(describe_break(before, after, read))
    return after


def describe_break(before: SentPrompt, after: SentPrompt, read: int) -> PromptCacheBreak:
    reasons = find_reasons(before, after)
    old, new = ({tool.name: tool for tool in sent.tools} for sent in (before, after))
    kept = [name for name in new if name in old]
    return PromptCacheBreak(
        primary_reason=reasons[0],
        contributing_reasons=reasons[1:],
        survived_tokens=read,
        frontier_tokens=before.tokens,
        shortfall_tokens=before.tokens - read,
        retention_ratio=round(read / before.tokens, 4),
        model_from=before.model if before.model != after.model else None,
        model_to=after.model if before.model != after.model else None,
        tools_added=[name for name in new if name not in old] or None,
        tools_removed=[name for name in old if name not in new] or None,
        tools_redefined=[name for name in kept if old[name] != new[name]] or None,
        tools_reordered=[n for n in old if n in new] != kept or None,
        rewrite_message_index=first_difference(before.messages, after.messages),
    )


def find_reasons(before: SentPrompt, after: SentPrompt) -> list[str]:
    """What changed, in the order of a prompt: the first change is what broke the cache."""
    found = []
    if before.model != after.model:
        found.append("model_changed")
    if before.tools != after.tools:
        found.append("tools_changed")
    if before.system != after.system:
        found.append("system_changed")
    if first_difference(before.messages, after.messages) is not None:
        found.append("messages_rewritten")
    return found or ["expired_or_evicted"]


def first_difference(before: tuple[Message, ...], after: tuple[Message, ...]) -> int | None:
    """The first message of the last prompt that is not in the same place in this one."""
    for index, message in enumerate(before):
        if index >= len(after) or (after[index] is not message and after[index] != message):
            return index
    return None
