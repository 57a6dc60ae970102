"""`trimtab mock-model`, the scripted model server as a program."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "trimtab", "mock-model"]


def start(script: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "--script", str(script), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ask(url: str) -> str:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps({"model": "m", "messages": []}).encode()
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=50) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text("- text: hello\n  repeat: forever\n")
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_counts_when_it_ends(
    script: Path, number: signal.Signals
) -> None:
    with start(script, "--port", "0") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("listening on http://127.0.0.1:")
        assert ask(first.split()[-1]) == "hello"
        process.send_signal(number)
        _, errors = process.communicate(timeout=50)
    assert process.returncode == 0
    assert errors.startswith("1 request, 1 answer, 0 errors, ")
    assert errors.count("\n") == 1


def test_once_ends_after_the_first_answer(script: Path) -> None:
    with start(script, "--once") as process:
        assert process.stdout is not None
        assert ask(process.stdout.readline().split()[-1]) == "hello"
        assert process.wait(10) == 0
        process.communicate()


def test_a_bad_script_ends_it_with_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("- txt: hello\n")
    with start(path) as process:
        output, errors = process.communicate(timeout=50)
    assert (process.returncode, output) == (2, "")
    assert errors.startswith("The script ")
    assert errors.count("\n") == 1
