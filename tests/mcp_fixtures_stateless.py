"""The server of `mcp_fixtures.py` at 2026-07-28: it asks by results, and notifies who listens.

It refuses the older greeting, so that whatever reaches it speaks the stateless version.
"""

import json
import sys
from typing import Any

from mcp_fixtures import ASKING as OLDER
from mcp_fixtures import (
    CAPABILITIES,
    CONTACT,
    PERSON,
    SIMPLE,
    Object,
    answer,
    build_form,
    describe_answer,
    send,
    text,
)

META = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY = -32602, -32601, -32021
PREFIX = "test_input_required_result_"


def form(**properties: Any) -> Object:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = {"mode": "form", "message": "Please answer", "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sampling(words: str) -> Object:
    message = {"role": "user", "content": text(words)}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": 100},
    }


ROOTS: Object = {"method": "roots/list", "params": {}}
NAME, CONFIRM = form(name={"type": "string"}), form(ok={"type": "boolean"})
ASKED: dict[str, dict[str, Object]] = {
    "elicitation": {"user_name": NAME},
    "sampling": {"capital_question": sampling("What is the capital of France?")},
    "list_roots": {"client_roots": ROOTS},
    "request_state": {"confirm": CONFIRM},
    "tampered_state": {"confirm": CONFIRM},
    "multiple_inputs": {"user_name": NAME, "greeting": sampling("Greet."), "client_roots": ROOTS},
    "multi_round": {"step1": NAME},
    "capabilities": {"user_name": NAME, "greeting": sampling("Greet.")},
    "prompt": {"user_context": form(context={"type": "string"})},
}
"""What each tool, and the prompt, asks for first."""
STATED = ("request_state", "tampered_state", "multiple_inputs", "multi_round")
TOOLS = (
    *(PREFIX + name for name in ASKED if name != "prompt"),
    *("test_missing_capability", "test_streaming_elicitation", "test_logging_tool"),
    *("test_trigger_tool_change", "test_trigger_prompt_change", "test_stubborn_log"),
)
PROMPT = {"name": f"{PREFIX}prompt", "description": "A prompt that asks"}
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}
listeners: dict[Any, Object] = {}


class Refusal(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Object = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


def ask(name: str, params: Object) -> Object | None:
    """Return what a tool still wants to know; None if it knows everything."""
    given, state = params.get("inputResponses"), params.get("requestState")
    if given is not None and not all(isinstance(value, dict) for value in given.values()):
        raise Refusal(INVALID_PARAMS, "An answer is not an object.")
    wanted, stage = ASKED[name], "one"
    if name in STATED and state is not None:
        if state not in (f"{name}-one", f"{name}-two"):
            raise Refusal(INVALID_PARAMS, "The state was tampered with.")
        stage = state.rpartition("-")[2]
    if name == "multi_round" and stage == "one" and given and "step1" in given:
        wanted, stage = {"step2": form(color={"type": "string"})}, "two"
    elif name == "multi_round" and stage == "two":
        wanted = {"step2": form(color={"type": "string"})}
    able = (params.get("_meta") or {}).get(f"{META}clientCapabilities") or {}
    left = {
        key: question
        for key, question in wanted.items()
        if key not in (given or {}) and NEEDS.get(question["method"], "roots") in able
    }
    if not left and (given or name == "capabilities"):
        return None
    result: Object = {"resultType": "input_required", "inputRequests": left or wanted}
    return result | {"requestState": f"{name}-{stage}"} if name in STATED else result


def ask_as_before(params: Object) -> Object:
    """Do what the older server does by a request to the client, by a result."""
    name, given = params["name"], params.get("arguments") or {}
    answers = params.get("inputResponses") or {}
    if name == "test_sampling":
        question = sampling(given["prompt"])
    else:
        question = {"method": "elicitation/create", "params": build_form(name, given)}
    if "it" not in answers:
        return {"resultType": "input_required", "inputRequests": {"it": question}}
    if name == "test_sampling":
        return {"content": [text(f"LLM response: {answers['it']['content']['text']}")]}
    return describe_answer(answers["it"])


def call_tool(params: Object) -> Object | None:
    name, meta = params["name"], params.get("_meta") or {}
    if name in OLDER or name == "test_sampling":
        return ask_as_before(params)
    if name.startswith(PREFIX):
        found = ask(name.removeprefix(PREFIX), params)
        return found or {"content": [text(f"Got {json.dumps(params.get('inputResponses'))}")]}
    if name == "test_missing_capability" and "sampling" not in meta[f"{META}clientCapabilities"]:
        needed: Object = {"requiredCapabilities": {"sampling": {}}}
        raise Refusal(MISSING_CAPABILITY, "This tool needs sampling.", needed)
    if name == "test_streaming_elicitation":
        return {"resultType": "input_required", "inputRequests": {"who": form(**CONTACT, **PERSON)}}
    level = meta.get(f"{META}logLevel")
    if name == "test_stubborn_log" or (name == "test_logging_tool" and level):
        told = {"level": "info", "data": "A line of the log"}
        send({"method": "notifications/message", "params": told})
    for kind in ("tool", "prompt"):
        if name == f"test_trigger_{kind}_change":
            notify(f"notifications/{kind}s/list_changed", f"{kind}sListChanged", {})
    return {"content": [text("done")]} if name in TOOLS else None


def notify(method: str, wanted: str, params: Object) -> None:
    for number, filters in listeners.items():
        if filters.get(wanted):
            meta = {f"{META}subscriptionId": number}
            send({"method": method, "params": {**params, "_meta": meta}})


def listen(number: Any, params: Object) -> None:
    listeners[number] = params.get("notifications") or {}
    told = {"_meta": {f"{META}subscriptionId": number}, "notifications": listeners[number]}
    send({"method": "notifications/subscriptions/acknowledged", "params": told})


def extend(method: str, result: Object) -> Object:
    if method == "tools/list":
        more = [
            {"name": name, "description": name, "inputSchema": {"type": "object"}} for name in TOOLS
        ]
        return {**result, "tools": [*result["tools"], *more]}
    if method == "prompts/list":
        return {**result, "prompts": [*result["prompts"], PROMPT]}
    return result


def respond(number: Any, method: str, params: Object) -> Object | None:
    if method == "server/discover":
        changing = {kind: {"listChanged": True} for kind in ("tools", "prompts")}
        capabilities = {**CAPABILITIES, **changing}
        return {"supportedVersions": [VERSION], "capabilities": capabilities}
    if f"{META}protocolVersion" not in (params.get("_meta") or {}) or method == "initialize":
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {method}")
    if method == "tools/call" and (called := call_tool(params)) is not None:
        return called
    if method == "prompts/get" and params["name"] == f"{PREFIX}prompt":
        message = {"role": "user", "content": text("A prompt with context")}
        return ask("prompt", params) or {"messages": [message]}
    if method in SIMPLE:
        return extend(method, SIMPLE[method])
    try:
        return answer(number, method, params)
    except LookupError as error:
        code = INVALID_PARAMS if method == "resources/read" else METHOD_NOT_FOUND
        raise Refusal(code, f"not found: {error}", {"uri": params.get("uri")}) from None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if method == "notifications/cancelled":
            listeners.pop(params.get("requestId"), None)
        if number is None or method is None:
            continue
        if method == "subscriptions/listen":
            listen(number, params)
            continue
        try:
            result = respond(number, method, params)
        except Refusal as refusal:
            send({"id": number, "error": refusal.error})
            continue
        if result is not None:
            meta = {f"{META}serverInfo": {"name": "fixtures", "version": "2"}}
            send({"id": number, "result": {"resultType": "complete", **result, "_meta": meta}})


if __name__ == "__main__":
    main()
