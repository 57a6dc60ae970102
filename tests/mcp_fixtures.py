"""A server with the tools, resources and prompts that the official suite wants to find.

It speaks the version with a handshake on standard input and output, with nothing but the standard
library. The suite reaches it through `trimtab mcp gateway`.
"""

import base64
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 32).decode()
WAV = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 32).decode()
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
PERSON = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
CONTACT = {"username": {"type": "string"}, "email": {"type": "string"}}
ASKING = {
    "test_elicitation": CONTACT,
    "test_elicitation_sep1034_defaults": PERSON,
    "test_elicitation_sep1330_enums": CHOICES,
}


def text(value: str) -> Object:
    return {"type": "text", "text": value}


def resource(uri: str, kind: str, value: str) -> Object:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": value}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
CONTENT: dict[str, list[Object]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data"}'),
    ],
}
TOOLS = (
    *CONTENT,
    *ASKING,
    "test_address",
    "create_pull_request",
    *("test_tool_with_logging", "test_tool_with_progress", "test_error_handling", "test_sampling"),
)
PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
}
asked: dict[Any, Callable[[Any], Object]] = {}
calls: dict[Any, Any] = {}


def send(message: Object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(call: Any, method: str, params: Object, finish: Callable[[Any], Object]) -> None:
    number = f"a-{len(calls)}"
    asked[number], calls[number] = finish, call
    send({"id": number, "method": method, "params": params})


def describe_answer(answer: Any) -> Object:
    shown = f"action={answer.get('action')}, content={json.dumps(answer.get('content'))}"
    return {"content": [text(f"Elicitation completed: {shown}")]}


def build_form(name: str, given: Object) -> Object:
    if name in ASKING:
        schema = {"type": "object", "properties": ASKING[name]}
        return {"message": given.get("message", "Please answer"), "requestedSchema": schema}
    url = "https://example.com/sign-in"
    return {"mode": "url", "message": "Please sign in", "elicitationId": "sign-in", "url": url}


def call_tool(number: Any, params: Object) -> Object | None:
    name, given = params["name"], params.get("arguments") or {}
    if name in CONTENT:
        return {"content": CONTENT[name]}
    if name in ASKING or name == "test_address":
        ask(number, "elicitation/create", build_form(name, given), describe_answer)
        return None
    if name == "create_pull_request":
        address = f"https://github.com/{given['owner']}/{given['repo']}/pull/7"
        return {"content": [text(json.dumps({"html_url": address, "title": given["title"]}))]}
    if name == "test_sampling":
        message = {"role": "user", "content": text(given["prompt"])}
        ask(
            number,
            "sampling/createMessage",
            {"messages": [message], "maxTokens": 100},
            lambda answer: {"content": [text(f"LLM response: {answer['content']['text']}")]},
        )
        return None
    if name == "test_error_handling":
        failed = [text("This tool intentionally returns an error for testing")]
        return {"content": failed, "isError": True}
    token = (params.get("_meta") or {}).get("progressToken")
    for step, words in enumerate(("started", "processing data", "completed")):
        if name == "test_tool_with_logging":
            told: Object = {"level": "info", "data": f"Tool execution {words}"}
            send({"method": "notifications/message", "params": told})
        elif token is not None:
            told = {"progressToken": token, "progress": step * 50, "total": 100}
            send({"method": "notifications/progress", "params": told})
        time.sleep(0.05)
    for uri in sorted(subscribed):
        send({"method": "notifications/resources/updated", "params": {"uri": uri}})
    return {"content": [text("done")]}


subscribed: set[str] = set()


def read_resource(uri: str) -> Object:
    if uri == "test://static-text":
        words = "This is the content of the static text resource."
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": words}]}
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]}
    found = re.fullmatch(r"test://template/(\w+)/data", uri)
    if found is None:
        raise LookupError(uri)
    data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
    content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    return {"contents": [content]}


def get_prompt(name: str, given: Object) -> Object:
    if name == "test_simple_prompt":
        parts = [text("This is a simple prompt for testing.")]
    elif name == "test_prompt_with_arguments":
        words = f"arg1='{given['arg1']}', arg2='{given['arg2']}'"
        parts = [text(f"Prompt with arguments: {words}")]
    elif name == "test_prompt_with_image":
        parts = [IMAGE, text("Please analyze the image above.")]
    else:
        embedded = "Embedded resource content for testing."
        parts = [
            resource(given["resourceUri"], "text/plain", embedded),
            text("Please process the embedded resource above."),
        ]
    return {"messages": [{"role": "user", "content": part} for part in parts]}


SIMPLE: dict[str, Object] = {
    **{f"resources/{name}": {} for name in ("subscribe", "unsubscribe")},
    "ping": {},
    "logging/setLevel": {},
    "completion/complete": {
        "completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}
    },
    "tools/list": {
        "tools": [
            {"name": name, "description": name, "inputSchema": {"type": "object"}} for name in TOOLS
        ]
    },
    "resources/list": {
        "resources": [
            {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
        ]
    },
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]
    },
    "prompts/list": {
        "prompts": [
            {
                "name": name,
                "description": name,
                "arguments": [{"name": one, "required": True} for one in names],
            }
            for name, names in PROMPTS.items()
        ]
    },
}
CAPABILITIES = {
    "tools": {},
    "resources": {"subscribe": True},
    "prompts": {},
    "logging": {},
    "completions": {},
}


def answer(number: Any, method: str, params: Object) -> Object | None:
    if method == "resources/subscribe":
        subscribed.add(params["uri"])
    if method in SIMPLE:
        return SIMPLE[method]
    match method:
        case "initialize":
            info = {"name": "fixtures", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info}
        case "tools/call":
            return call_tool(number, params)
        case "resources/read":
            return read_resource(params["uri"])
        case "prompts/get":
            return get_prompt(params["name"], params.get("arguments") or {})
    raise LookupError(method)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        number = message.get("id")
        if "method" not in message:
            if number in asked:
                finish, refusal = asked.pop(number), message.get("error")
                if refusal:
                    result = {"content": [text(refusal["message"])], "isError": True}
                else:
                    result = finish(message.get("result") or {})
                send({"id": calls[number], "result": result})
            continue
        if number is None:
            continue
        try:
            result_or_none = answer(number, message["method"], message.get("params") or {})
        except LookupError as error:
            send({"id": number, "error": {"code": -32601, "message": f"not found: {error}"}})
            continue
        if result_or_none is not None:
            send({"id": number, "result": result_or_none})


if __name__ == "__main__":
    main()
