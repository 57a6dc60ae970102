"""Many clients of the bridge, and clients that leave: bridge_load.py [CLIENTS] [CANCELS] [SEED].

A service that answers each request with the mark in it stands behind the installed program. No
client may get another's answer, on its own wire or a translated one; after clients have left in
the middle of answers, no call may be left at the service, and no descriptor in the bridge.
"""

import asyncio
import json
import os
import random
import re
import sys
import tempfile
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from clikit import TRIMTAB
from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.provider import Reply, Usage
from trimtab.providers.wires import new_server_wire

CLIENTS, CANCELS, CALLS = 100, 1_000, 5
ROUTES = ("/v1/messages", "/v1/chat/completions", "/v1/responses")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MARK = re.compile(r"mark-\d+-\d+")
LEFT_SECONDS = 5.0


class Service:
    """A model service that takes its time and answers with the mark of the request."""

    def __init__(self) -> None:
        self.open = 0

    async def answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.open += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: *(\d+)", head.lower())
            body = await reader.readexactly(int(found[1]) if found else 0)
            marks = MARK.findall(body.decode())
            await self._stream(writer, f"{marks[-1] if marks else 'none'} " + "word " * 40)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _stream(self, writer: StreamWriter, text: str) -> None:
        usage = Usage(input_tokens=10, output_tokens=10)
        reply = Reply(message=AssistantMessage(text=text), usage=usage, model="m")
        writer.write(HEAD)
        for frame in new_server_wire("openai-chat").frames(reply, chunk=20):
            writer.write(frame)
            await writer.drain()
            await asyncio.sleep(0.002)


def write_request(route: str, key: str, mark: str) -> bytes:
    text = f"Say {mark}."
    body: dict[str, object] = {"model": "m", "stream": True, "max_tokens": 100}
    if route == "/v1/responses":
        body = {"model": "m", "stream": True, "input": text}
    else:
        body["messages"] = [{"role": "user", "content": text}]
    data = json.dumps(body).encode()
    head = f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + data


async def ask(port: int, key: str, route: str, mark: str) -> str:
    """Return what is wrong with an answer; empty if it has the client's own mark alone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(write_request(route, key, mark))
    async with asyncio.timeout(60):
        answer = (await reader.read()).decode()
    writer.close()
    pieces = "".join(re.findall(r'"(?:text|content|delta)": ?"([^"]*)"', answer))
    wrong = set(MARK.findall(pieces)) - {mark}
    return "" if mark in pieces and not wrong else f"{route} {mark}: {answer[:200]}"


async def leave(port: int, key: str, route: str, mark: str, pieces: int) -> None:
    """Begin to read an answer, and go."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(write_request(route, key, mark))
    async with asyncio.timeout(60):
        for _ in range(pieces):
            await reader.readline()
    writer.transport.abort()


async def play(port: int, key: str, pid: int, service: Service) -> list[str]:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else CLIENTS
    cancels = int(sys.argv[2]) if len(sys.argv) > 2 else CANCELS
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)

    async def converse(number: int) -> list[str]:
        routes = [chance.choice(ROUTES) for _ in range(CALLS)]
        return [
            await ask(port, key, route, f"mark-{number}-{turn}")
            for turn, route in enumerate(routes)
        ]

    answers = await asyncio.gather(*(converse(number) for number in range(clients)))
    problems = [problem for each in answers for problem in each if problem]
    before = len(os.listdir(f"/proc/{pid}/fd"))
    for number in range(0, cancels, 20):
        await asyncio.gather(
            *(
                leave(port, key, chance.choice(ROUTES), f"mark-{n}-9", chance.randrange(0, 30))
                for n in range(number, min(number + 20, cancels))
            )
        )
    for _ in range(int(LEFT_SECONDS / 0.05)):
        if not service.open:
            break
        await asyncio.sleep(0.05)
    after = len(os.listdir(f"/proc/{pid}/fd"))
    if service.open:
        problems.append(f"{service.open} calls are left at the service")
    if after > before + 5:
        problems.append(f"the bridge has {after} descriptors, {before} before")
    figures = (
        f"{clients} clients, {clients * CALLS} calls; {cancels} left: {len(problems)} problems"
    )
    print("\n".join((*problems[:5], figures)))
    return problems


async def main() -> int:
    service = Service()
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory(prefix="trimtab-bridge-load-") as home:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        env = {"PATH": os.environ["PATH"], "HOME": home, "COPILOT_HOME": home}
        env |= {"COPILOT_PROVIDER_BASE_URL": address, "COPILOT_MODEL": "m"}
        process = await asyncio.create_subprocess_exec(
            *(TRIMTAB, "bridge", "--model", "m", "--json"),
            env=env,
            cwd=Path(home),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            line = json.loads(await process.stdout.readline())
            port = int(line["url"].rpartition(":")[2])
            problems = await play(port, line["key"], process.pid, service)
        finally:
            process.terminate()
            await process.wait()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
