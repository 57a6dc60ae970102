"""Models that misbehave, against limits: every run ends, none spends past its limit.

Run as a program with the number of runs: `python tests/properties/limit_cases.py 1000`.
"""

import asyncio
import random
import shutil
import sys
import tempfile
from typing import Any

import msgspec

from trimtab import Runtime, SessionOptions
from trimtab.contracts.options import LimitOptions, Thresholds
from trimtab.testing import ModelServer, Script
from trimtab.testing.playing import ALLOW_ALL

PATIENCE = 30.0


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run: how the model behaves, and what it may spend."""

    family: str
    script: dict[str, Any]
    limits: LimitOptions
    mode: str
    model: str
    compaction: Thresholds | None


def glob(pattern: str) -> dict[str, Any]:
    return {"name": "glob", "arguments": {"pattern": pattern}}


def done(outcome: str) -> dict[str, Any]:
    return {"name": "task_complete", "arguments": {"summary": "x", "outcome": outcome}}


def families(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    """How a model can waste money; each list is repeated for ever."""
    usage = {"input": rng.randrange(100, 20_000), "output": rng.randrange(1, 3_000)}
    return {
        "never finishes": [{"text": "Nearly there.", "usage": usage}],
        "calls without end": [{"tools": [glob(f"*{n}")], "usage": usage} for n in range(9)],
        "repeats one call": [{"tools": [glob("*")], "usage": usage}],
        "floods with calls": [{"tools": [glob(f"{n}*") for n in range(12)], "usage": usage}],
        "always fails": [{"error": {"status": rng.choice([429, 500, 503])}}],
        "fails now and then": [
            *[{"tools": [glob(f"{n}")], "usage": usage} for n in range(6)],
            {"error": {"status": 500}},
            {"text": "cut", "break": {"how": "close", "after": 1}},
        ],
        "always blocked": [{"tools": [done("blocked")], "usage": usage}],
        "says nothing": [{"text": "", "usage": usage}],
        "calls what is not there": [{"tools": [{"name": "nope", "arguments": {}}] * 3}],
        "counts nothing": [{"tools": [glob("x")]}, {"text": "hm"}],
        "too large for ever": [{"error": {"status": 413}}, {"tools": [glob("x")], "usage": usage}],
        "always spawns": [{"tools": [spawn("general-purpose")], "usage": usage}],
        "spawns many": [{"tools": [spawn("explore")] * 3, "usage": usage}],
        "spawns and works": [
            {"tools": [spawn("task"), glob("*")], "usage": usage},
            {"text": "done", "usage": usage},
        ],
        "grows": [{"tools": [{"name": "bash", "arguments": SEQ}], "usage": usage}],
    }


def spawn(agent: str) -> dict[str, Any]:
    arguments = {"description": "more of it", "prompt": "go on", "agent_type": agent}
    return {"name": "task", "arguments": arguments}


SEQ = {"command": "seq 1 2000", "description": "count"}


def make_case(seed: int) -> Case:
    rng = random.Random(seed)
    kinds = families(rng)
    family = list(kinds)[seed % len(kinds)]
    steps = [step for _ in range(40) for step in kinds[family]]
    money = rng.random() < 0.3
    limits = LimitOptions(
        max_tokens=None if money else rng.randrange(500, 80_000),
        max_usd=rng.uniform(0.001, 0.2) if money else None,
        max_turns=rng.choice([None, 5, 60]),
        max_continues=rng.choice([0, 5, 40]),
        retries=2,
        retry_delay=0.0,
        max_retry_delay=0.0,
    )
    return Case(
        family=family,
        script={"replies": steps, "otherwise": kinds[family][0]},
        limits=limits,
        mode=rng.choice(["interactive", "autopilot"]),
        model="gpt-4.1" if money else "scripted",
        compaction=rng.choice([None, Thresholds(background=0.02, exhausted=0.04)]),
    )


async def check_case(seed: int) -> str:
    """What is wrong with a run; empty if nothing is."""
    case = make_case(seed)
    home = tempfile.mkdtemp(prefix="trimtab-limits-")
    try:
        async with ModelServer(Script.of(case.script)) as server:
            return await _check(case, server, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _check(case: Case, server: ModelServer, home: str) -> str:
    env = {
        "COPILOT_HOME": home,
        "COPILOT_PROVIDER_BASE_URL": server.base_url,
        "COPILOT_MODEL": case.model,
        "PATH": "/usr/bin:/bin",
    }
    options = SessionOptions(
        cwd=home,
        mode=case.mode,  # type: ignore[arg-type]
        limits=case.limits,
        permissions=ALLOW_ALL,
        compaction=case.compaction,
    )
    calls: list[Any] = []
    live = await Runtime(env=env).create(options)
    live.subscribe(lambda event, _: calls.append(event.data) if event.type == CALL else None)
    try:
        async with asyncio.timeout(PATIENCE):
            await live.ask("go")
    except TimeoutError:
        return f"{case.family}: did not end within {PATIENCE:g} s"
    finally:
        await live.close()
    return _judge(case, server, calls)


CALL = "trimtab.model_call"


def _judge(case: Case, server: ModelServer, calls: list[Any]) -> str:
    paid = [call for call in calls if call.status == "success"]
    tokens = [(call.input_tokens or 0) + (call.output_tokens or 0) for call in paid]
    limit = case.limits
    if limit.max_tokens is not None and sum(tokens[:-1]) > limit.max_tokens:
        return f"{case.family}: {sum(tokens):,} tokens of {limit.max_tokens:,}"
    usd = [call.cost_usd or 0.0 for call in paid]
    if limit.max_usd is not None and sum(usd[:-1]) > limit.max_usd:
        return f"{case.family}: ${sum(usd):.4f} of ${limit.max_usd:.4f}"
    # A call that was called off may or may not have reached the server.
    fewest = sum(call.status != "aborted" for call in calls)
    if not fewest <= server.usage.requests <= len(calls):
        return f"{case.family}: {len(calls)} calls recorded, {server.usage.requests} received"
    counted = server.usage.input_tokens + server.usage.output_tokens
    exact = all(call.status != "aborted" for call in calls)
    if sum(tokens) > counted or (exact and sum(tokens) != counted):
        return f"{case.family}: {sum(tokens):,} tokens in the ledger, {counted:,} by the server"
    return ""


async def check_many(count: int, first: int = 0) -> list[str]:
    """The failures among so many runs, a few at a time."""
    gate = asyncio.Semaphore(4)

    async def one(seed: int) -> str:
        async with gate:
            problem = await check_case(seed)
            return f"seed {seed}: {problem}" if problem else ""

    return [p for p in await asyncio.gather(*(one(first + n) for n in range(count))) if p]


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    found = asyncio.run(check_many(number))
    print("\n".join(found[:10]))
    print(f"{number - len(found)} of {number} runs within their limit")
    sys.exit(1 if found else 0)
