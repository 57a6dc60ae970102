"""Detects a prompt cache miss of a service, and finds out what caused it."""

from trimtab.contracts.events.context import PromptCacheBreak
from trimtab.contracts.messages import Message
from trimtab.contracts.provider import Request, Usage
from trimtab.contracts.run import SentPrompt, SessionPort

MIN_TOKENS = 1024
"""Services do not cache prompts much shorter than this."""
MIN_CACHED_SHARE = 0.5
"""A cache read of less than this share of the last prompt counts as a miss."""


def watch_cache(
    session: SessionPort, before: SentPrompt | None, request: Request, usage: Usage
) -> SentPrompt | None:
    """Compare a call with the one before it; return the prompt to compare the next one with.

    Emits an event about a miss only if the service reported cached tokens before.
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
    if before is not None and before.caching and before.tokens >= MIN_TOKENS:
        share = read / before.tokens
        if share < MIN_CACHED_SHARE:
            session.emit(describe_break(before, after, read))
    return after


def describe_break(before: SentPrompt, after: SentPrompt, read: int) -> PromptCacheBreak:
    reasons = find_reasons(before, after)
    old, new = ({tool.name: tool for tool in sent.tools} for sent in (before, after))
    common = [name for name in new if name in old]
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
        tools_redefined=[name for name in common if old[name] != new[name]] or None,
        tools_reordered=[name for name in old if name in new] != common or None,
        rewrite_message_index=first_difference(before.messages, after.messages),
    )


def find_reasons(before: SentPrompt, after: SentPrompt) -> list[str]:
    """Return what changed, in the order of a prompt: the first change caused the miss."""
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
    """Return the index of the first earlier message that changed or moved; None if none did."""
    for index, message in enumerate(before):
        if index >= len(after) or (after[index] is not message and after[index] != message):
            return index
    return None
