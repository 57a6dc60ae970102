"""A language server for `.toy` files, and servers that are dead, mute or lie. Run as a program.

In a toy file `def name` defines a name, any other word uses one, and a line with the word BROKEN
is an error. The first argument is the mode. A `linked` server knows a project only once a file is
open, says of all open files after each change which names are not defined, and names no versions.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

WORD = re.compile(r"\w+")
MODE = sys.argv[1] if len(sys.argv) > 1 else "honest"
files: dict[str, str] = {}


def read() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        return None
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def path_of(uri: str) -> str:
    return unquote(uri.removeprefix("file://"))


def text_of(path: str) -> str:
    return files.get(path) or Path(path).read_text()


def everywhere(root: str) -> list[str]:
    return sorted(str(path) for path in Path(root).rglob("*.toy"))


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }


def find(root: str, name: str) -> list[tuple[str, int, int]]:
    """Where a word stands: path, line, column in UTF-16."""
    return [
        (path, number, len(line[: match.start()].encode("utf-16-le")) // 2)
        for path in everywhere(root)
        for number, line in enumerate(text_of(path).split("\n"))
        for match in WORD.finditer(line)
        if match[0] == name
    ]


def word_at(params: dict[str, Any]) -> str:
    lines = text_of(path_of(params["textDocument"]["uri"])).split("\n")
    line, column = lines[params["position"]["line"]], params["position"]["character"]
    for match in WORD.finditer(line):
        if len(line[: match.end()].encode("utf-16-le")) // 2 > column:
            return match[0]
    return ""


def publish(path: str, version: int) -> None:
    lines = text_of(path).split("\n")
    found = [
        {"range": span(number, 0, 1), "severity": 1, "message": f"broken: {line.strip()}"}
        for number, line in enumerate(lines)
        if "BROKEN" in line
    ]
    params: dict[str, Any] = {"uri": f"file://{path}", "version": version}
    if MODE == "linked":
        del params["version"]
        found += [
            {"range": span(number, 0, 1), "severity": 1, "message": f"undefined: {line.strip()}"}
            for number, line in enumerate(lines)
            if line.startswith("use ") and not is_defined(line.split()[1], path)
        ]
    params["diagnostics"] = found
    send({"method": "textDocument/publishDiagnostics", "params": params})


def is_defined(name: str, path: str) -> bool:
    return any(f"def {name}" in text_of(other) for other in everywhere(str(Path(path).parent)))


def search(params: dict[str, Any], root: str) -> Any:
    return [
        {"name": name, "kind": 12, "location": {"uri": f"file://{path}", "range": span(0, 0, 1)}}
        for path in everywhere(root)
        for name in re.findall(r"def (\w+)", text_of(path))
        if params["query"] in name
    ]


def outline(params: dict[str, Any], _: str) -> Any:
    lines = text_of(path_of(params["textDocument"]["uri"])).split("\n")
    return [
        {"name": line.split()[1], "kind": 12, "range": span(number, 0, 1)}
        for number, line in enumerate(lines)
        if line.startswith("def ")
    ]


def calls(_: dict[str, Any], root: str) -> Any:
    item = {"name": "other", "uri": f"file://{root}/a.toy", "range": span(2, 0, 1)}
    return [{"from": item, "to": item}]


def hover(params: dict[str, Any], _: str) -> Any:
    return {"contents": {"kind": "markdown", "value": f"the toy {word_at(params)}"}}


def define(params: dict[str, Any], root: str) -> Any:
    return [
        {"uri": f"file://{path}", "range": span(number, 0, 1)}
        for path in everywhere(root)
        for number, line in enumerate(text_of(path).split("\n"))
        if f"def {word_at(params)}" in line
    ]


def refer(params: dict[str, Any], root: str) -> Any:
    name = word_at(params)
    return [
        {"uri": f"file://{path}", "range": span(line, column, column + len(name))}
        for path, line, column in find(root, name)
    ]


def prepare(params: dict[str, Any], root: str) -> Any:
    return [{"name": word_at(params), **place} for place in refer(params, root)[:1]]


def rename(params: dict[str, Any], root: str) -> Any:
    changes: dict[str, list[Any]] = {}
    for place in refer(params, root):
        edit = {"range": place["range"], "newText": params["newName"]}
        changes.setdefault(place["uri"], []).append(edit)
    documents = [
        {"textDocument": {"uri": uri, "version": None}, "edits": edits}
        for uri, edits in changes.items()
    ]
    return {"documentChanges": documents}


TRUTHS = {
    "workspace/symbol": search,
    "textDocument/documentSymbol": outline,
    "callHierarchy/incomingCalls": calls,
    "callHierarchy/outgoingCalls": calls,
    "textDocument/hover": hover,
    "textDocument/definition": define,
    "textDocument/references": refer,
    "textDocument/prepareCallHierarchy": prepare,
    "textDocument/rename": rename,
}
TAKEN = ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose")
LIES: dict[str, Any] = {
    "textDocument/definition": [{"uri": "http://example.com/x", "range": span(0, 0, 1)}],
    "textDocument/references": {"uri": 7, "range": {"start": {"line": -4}}},
    "textDocument/hover": {"contents": [{"value": 5}, None]},
    "textDocument/documentSymbol": [{"name": "x", "range": {}}],
    "textDocument/rename": {"changes": {"file:///etc/hostname": "no list"}},
    "textDocument/prepareCallHierarchy": "nobody",
    "workspace/symbol": 12,
}


def answer(method: str, params: dict[str, Any], root: str) -> dict[str, Any]:
    if MODE == "linked" and method == "workspace/symbol" and not files:
        stack = "No Project.\n    at getProjects (/opt/x.js:1:2)"
        return {"error": {"code": -32603, "message": stack}}
    return {"result": LIES[method] if MODE == "liar" else TRUTHS[method](params, root)}


def take(method: str, params: dict[str, Any]) -> None:
    """Remember the text of a file, and say what is wrong with it."""
    document = params["textDocument"]
    path = path_of(document["uri"])
    if method == "textDocument/didClose":
        files.pop(path, None)
        return
    changes = params.get("contentChanges")
    files[path] = changes[0]["text"] if changes else document["text"]
    for other in files if MODE == "linked" else (path,):
        publish(other, document["version"])


def main() -> None:
    root = ""
    if MODE == "dead":
        print("no licence", file=sys.stderr)
        sys.exit(3)
    if MODE == "garbage":
        print("Welcome to the server!\n" * 1000, flush=True)
    with Path(os.environ["TOY_PIDS"]).open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    while (message := read()) is not None:
        method, number = message.get("method"), message.get("id")
        params: dict[str, Any] = message.get("params") or {}
        if MODE == "mute":
            continue
        if method == "initialize":
            root = path_of(params["rootUri"])
            names = ("definition", "references", "hover", "documentSymbol", "rename")
            abilities = {f"{name}Provider": True for name in (*names, "callHierarchy")}
            send({"id": 9000, "method": "workspace/configuration", "params": {"items": [{}]}})
            send({"id": number, "result": {"capabilities": abilities}})
        elif method in TAKEN:
            take(method, params)
        elif method == "exit":
            break
        elif number is not None and method is not None and method != "shutdown":
            if MODE == "crash":
                sys.exit(1)
            send({"id": number, **answer(method, params, root)})


if __name__ == "__main__":
    main()
