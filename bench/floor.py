"""The floor: a bare asyncio program that makes the same requests and runs the same commands.

It keeps no log, checks nothing, has no permissions: what any Python agent must at least cost.
Usage: floor.py --version | floor.py HOST PORT shell|read FILE
"""

import sys

if sys.argv[1:] != ["--version"]:
    import asyncio
    import json


async def main(host: str, port: str, kind: str, path: str) -> None:
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "x" * 6000},
        {"role": "user", "content": "Work until you are done."},
    ]
    tools = [
        {"type": "function", "function": {"name": "t", "description": "y" * 8000, "parameters": {}}}
    ]
    while True:
        body = json.dumps(
            {"model": "scripted", "messages": messages, "tools": tools, "stream": True}
        )
        data = body.encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(data)
        )
        writer.write(data)
        await writer.drain()
        calls = await read_reply(reader)
        if not calls:
            writer.close()
            return
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        for call in calls:
            text = await run_tool(kind, path, call)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


async def read_reply(reader: "asyncio.StreamReader") -> list[dict[str, object]]:
    head = await reader.readuntil(b"\r\n\r\n")
    chunks = []
    if b"chunked" in head.lower():
        while size := int(await reader.readline(), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
    calls: list[dict[str, object]] = []
    for line in b"".join(chunks).split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            choices = json.loads(line[6:]).get("choices") or [{}]
            for call in choices[0].get("delta", {}).get("tool_calls") or ():
                if call.get("id"):
                    calls.append(call)
                else:
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]  # type: ignore[index]
    return calls


async def run_tool(kind: str, path: str, call: dict[str, object]) -> str:
    if kind == "read":
        with open(path) as file:
            return file.read()
    arguments = json.loads(call["function"]["arguments"])  # type: ignore[index]
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", arguments["command"], stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode()


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print("floor 1")
    else:
        asyncio.run(main(*sys.argv[1:]))
