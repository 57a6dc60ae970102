"""A session of 230 MB and 74,000 events is listed, opened and shown like any other."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from logkit import EVENTS, SESSION, event, event_id, store_session

COUNT = 74_000
SIZE = 230_000_000
OPEN = """
import sys
from trimtab.session.log import EventLog
log = EventLog.open(sys.argv[1])
log.close()
print(log.count, len(log.findings))
"""


def write_big_log(path: Path) -> None:
    """Turns with tool calls; most of the bytes are tool output, some of it not ASCII."""
    pad = r"a line of output \"quoted\" and über\n"
    turn = [*EVENTS[3:11], EVENTS[2]]
    large = sum(name == "tool.execution_complete" for name, _ in turn)
    repeats = (SIZE - 250 * COUNT) * len(turn) // (COUNT * large * len(pad.encode()))
    templates = []
    for name, data in turn:
        full = {**data, "result": {"content": "@"}} if name == "tool.execution_complete" else data
        line = event(name, full, 0, 0).replace(b"@", (pad * repeats).encode())
        templates.append(line.split(event_id(0).encode()))
    with path.open("wb") as file:
        file.write(event("session.start", EVENTS[0][1], 0) + b"\n")
        for number in range(1, COUNT):
            start, middle, end = templates[number % len(turn)]
            own, parent = event_id(number).encode(), event_id(number - 1).encode()
            file.write(b"".join((start, own, middle, parent, end, b"\n")))


def measured(name: str, *command: str) -> tuple[str, float, int]:
    """Output, seconds from start to end, and peak memory in bytes of a command."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE)
    assert child.stdout is not None
    out = child.stdout.read().decode()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"{name}: {seconds:.2f} s, {memory / 1e6:.0f} MB")
    assert child.returncode == 0
    return out, seconds, memory


@pytest.mark.slow
def test_a_log_of_230_megabytes_is_listed_opened_and_shown_quickly_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    path = store_session(tmp_path, []) / "events.jsonl"
    write_big_log(path)
    assert path.stat().st_size > 0.95 * SIZE
    before = path.stat().st_mtime_ns

    steps = {
        "list": measured("list", "-m", "trimtab", "sessions", "list"),
        "open": measured("open", "-c", OPEN, str(path)),
        "show": measured("show", "-m", "trimtab", "sessions", "show", SESSION),
    }
    assert " MB  /work   Was heißt" in steps["list"][0]
    assert steps["open"][0] == f"{COUNT} 0\n"
    assert '> Was heißt "naïve"?' in steps["show"][0]
    # Promised are 2 seconds for the three; this machine may be busy with other tests.
    assert sum(seconds for _, seconds, _ in steps.values()) <= 4
    assert max(memory for _, _, memory in steps.values()) <= 300_000_000
    assert path.stat().st_mtime_ns == before

    _, _, memory = measured("verify", "-m", "trimtab", "sessions", "verify", SESSION)
    assert memory <= 300_000_000
    out = str(tmp_path / "out.html")
    _, _, memory = measured(
        "export", "-m", "trimtab", "sessions", "export", SESSION, "--format", "html", "-o", out
    )
    assert memory <= 300_000_000
