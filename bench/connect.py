"""From spawn to the reply of `connect`, which every program that uses an SDK waits for."""

import json
import subprocess
import time
from pathlib import Path

_FLOOR = "import sys; sys.stdin.buffer.readline(); print('ok', flush=True)"


def connect_ms(trimtab: Path, rounds: int = 15) -> float:
    """The shortest time from spawn to the reply, in milliseconds."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {}}).encode()
    request = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    argv = [str(trimtab), "--headless", "--no-auto-update", "--log-level", "info", "--stdio"]
    return min(_reply_ms(argv, request) for _ in range(rounds))


def bare_ms(python: Path, rounds: int = 15) -> float:
    """The same for a bare interpreter that answers one line."""
    return min(_reply_ms([str(python), "-I", "-c", _FLOOR], b"\n") for _ in range(rounds))


def _reply_ms(argv: list[str], request: bytes) -> float:
    began = time.perf_counter()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert process.stdout.readline()
        spent = time.perf_counter() - began
        process.stdin.close()
        process.stdout.read()
    return spent * 1000
