"""Nothing is contacted but the model service, and no name is looked up."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from clikit import Cli, bash, serving

WATCHED = """
import json, sys
seen = []
def watch(event, args):
    if event == "socket.connect":
        seen.append(args[1] if isinstance(args[1], str) else list(args[1]))
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        seen.append([event, str(args)])
sys.addaudithook(watch)
from trimtab.cli.main import main
code = main(sys.argv[1:])
print("SEEN " + json.dumps(seen), file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize("args", [(), ("--offline",), ("--autopilot", "--max-turns", "3")])
async def test_a_run_contacts_its_model_service_and_nothing_else(
    cli: Cli, args: tuple[str, ...]
) -> None:
    replies = [{"tools": [bash("echo hi")]}, {"error": 500}, {"text": "done"}, {"text": "done"}]
    async with serving(replies) as server:
        cli.use(server).env |= {"HTTPS_PROXY": "http://proxy.invalid:3128", "GH_TOKEN": "gho_1"}
        cli.env["TRIMTAB_LOCAL_SERVERS"] = "ollama=http://127.0.0.1:1/v1"
        outcome = await cli.run(
            "-c", WATCHED, "-p", "hi", "--allow-all", *args, program=sys.executable
        )
        place = [server.host, server.port]
    (line,) = [line for line in outcome.notes.splitlines() if line.startswith("SEEN ")]
    seen = json.loads(line[5:])
    assert seen
    assert all(address == place for address in seen), seen


@pytest.mark.needs("network namespaces")
async def test_a_run_in_a_network_of_its_own_sends_nothing_to_other_machines(
    tmp_path: Path,
) -> None:
    """`make scorecard` does the same with the whole suite.

    It is root there, whose usual folder for tests may be that of the true root.
    """
    root = Path(__file__).parents[2]
    suite = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/behaviour/test_headless.py"]
    wanted = ["-k", "answered_as_lines or resumed", "--basetemp", str(tmp_path / "tests")]
    program = [sys.executable, "bench/namespace.py", sys.executable, *suite, *wanted]
    process = await asyncio.create_subprocess_exec(
        *program, cwd=root, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()
    assert err.endswith(b"0 packets to other machines\n")
