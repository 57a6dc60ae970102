"""Model calls that MCP servers ask for: approved like any other call, bounded and recorded."""

from collections.abc import Callable, Sequence
from typing import Any

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import AssistantMessage, Image, Message, Part, Text, UserMessage
from trimtab.contracts.permission import Decision
from trimtab.contracts.provider import Reply, Request, Sampling
from trimtab.contracts.questions import AskSampling, SamplingQuestion
from trimtab.contracts.run import Run
from trimtab.contracts.text import neutralise
from trimtab.contracts.tool import Access
from trimtab.loop.side_calls import SideCall, Writer, call_model
from trimtab.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, RemoteError
from trimtab.permissions.approvals import describe_cover, generalise, to_rules
from trimtab.permissions.processor import Permissions

METHOD = "sampling/createMessage"
REJECTED = -1
"""The code that the protocol gives to a request that the person rejected."""
REJECTION = "User rejected sampling request"
MAX_TOKENS = 8_192
MAX_CALLS = 100
"""Calls of one server in a session; a server in a loop must not use up the budget."""
MAX_LENGTH = 200_000
SHOWN = 2_000
_STOP_REASONS = {"length": "maxTokens", "stop_sequence": "stopSequence", "tool_calls": "toolUse"}


class SamplingRequests:
    """Answers the servers of one session with the model of its main agent.

    A client that wants to answer servers itself is asked instead, unless a rule denies it.
    """

    def __init__(
        self,
        run: Run,
        find_permissions: Callable[[], Permissions],
        ask_client: AskSampling | None = None,
    ) -> None:
        self._run = run
        self._find_permissions = find_permissions
        self._ask_client = ask_client
        self._calls: dict[str, int] = {}

    async def answer(self, server: str, params: JsonObject, number: str | int) -> JsonObject:
        """Return the message for a server. Raises `RemoteError`."""
        read_request(params)
        if self._judge(server).verdict != "deny" and self._ask_client is not None:
            question = SamplingQuestion(server=server, request=params, number=number)
            given = await self._ask_client(question)
            if given is not None:
                return _read_response(given)
        if not await self._is_allowed(server, params):
            raise RemoteError(REJECTION, REJECTED)
        return await self.call(server, params)

    async def call(self, server: str, params: JsonObject) -> JsonObject:
        """Return the model's message for a request that was approved. Raises `RemoteError`."""
        request = read_request(params)
        if self._judge(server).verdict == "deny":
            raise RemoteError(REJECTION, REJECTED)
        made = self._calls.get(server, 0)
        if made >= MAX_CALLS:
            raise RemoteError(f"The limit of {MAX_CALLS} model calls is reached.", REJECTED)
        self._calls[server] = made + 1
        length = sum(len(str(message)) for message in request["messages"])
        call = SideCall(purpose="sampling", prompt=length // 4, answer=request["max_output_tokens"])
        writer = Writer.of(self._run)
        try:
            reply = await call_model(
                self._run, writer, call, Request(model=writer.model, stream=False, **request)
            )
        except ModelError as error:
            raise RemoteError(error.message, INTERNAL_ERROR) from None
        return write_answer(reply, writer.model)

    def _judge(self, server: str) -> Decision:
        return self._find_permissions().judge(_find_access(server), METHOD)

    async def _is_allowed(self, server: str, params: JsonObject) -> bool:
        """Decide by rules for the server, such as `server(sampling/createMessage)`, or ask."""
        permissions, access = self._find_permissions(), _find_access(server)
        decision = self._judge(server)
        if decision.verdict != "ask":
            return decision.verdict == "allow"
        request_id = new_id()
        request = build_permission_request(server, access, params)
        emit = self._run.session.emit
        emit(PermissionRequested(request_id=request_id, permission_request=request))
        answer = await permissions.ask_person(request_id, request)
        result = permissions.settle(access, answer)
        emit(PermissionCompleted(request_id=request_id, result=result))
        return answer.kind.startswith("approve")


def _find_access(server: str) -> Access:
    detail: JsonObject = {"serverName": server, "toolName": METHOD}
    return Access(kind="mcp", target=f"{server}-{METHOD}", mutates=False, detail=detail)


def _read_response(given: JsonObject) -> JsonObject:
    response = given.get("response")
    if not isinstance(response, dict):
        raise RemoteError(REJECTION, REJECTED)
    return response


def build_permission_request(server: str, access: Access, params: JsonObject) -> JsonObject:
    """Return the question whether a server may use the model, with what it would send."""
    shown = {name: value for name, value in params.items() if name in ("messages", "systemPrompt")}
    rules = to_rules(generalise(access, None), "session")
    return {
        "kind": "mcp",
        "serverName": server,
        "toolName": METHOD,
        "toolTitle": "Use your model",
        "args": {name: neutralise(str(value)[:SHOWN]) for name, value in shown.items()},
        "readOnly": True,
        "reason": f"The MCP server {server} wants an answer of your model, which you pay for.",
        "suggestedRules": [str(rule) for rule in rules],
        "suggestedRulesCover": describe_cover(rules),
    }


def read_request(params: JsonObject) -> dict[str, Any]:
    """Return the fields of a model call. Raises `RemoteError` for what is not understood."""
    messages, limit = params.get("messages"), params.get("maxTokens")
    if not isinstance(messages, list) or not messages:
        raise RemoteError("There are no messages.", INVALID_PARAMS)
    if len(str(messages)) > MAX_LENGTH:
        raise RemoteError(
            f"The messages are longer than {MAX_LENGTH:,} characters.", INVALID_PARAMS
        )
    if params.get("tools"):
        raise RemoteError("Tools are not supported in sampling.", INVALID_PARAMS)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise RemoteError("maxTokens is not a positive number.", INVALID_PARAMS)
    system, heat, stop = (
        params.get(name) for name in ("systemPrompt", "temperature", "stopSequences")
    )
    return {
        "system": system if isinstance(system, str) else "",
        "messages": tuple(read_message(message) for message in messages),
        "max_output_tokens": min(limit, MAX_TOKENS),
        "sampling": Sampling(
            temperature=heat if isinstance(heat, int | float) else None,
            stop=tuple(map(str, stop)) if isinstance(stop, list) else None,
        ),
    }


def read_message(message: Any) -> Message:
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    parts = tuple(read_part(block) for block in blocks)
    match message.get("role") if isinstance(message, dict) else None:
        case "user":
            return UserMessage(parts=parts)
        case "assistant":
            return AssistantMessage(text=join_texts(parts))
        case _:
            raise RemoteError("A message has neither the role user nor assistant.", INVALID_PARAMS)


def read_part(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return Image(data=data, mime_type=kind)
        case _:
            raise RemoteError("A message may contain text and images only.", INVALID_PARAMS)


def join_texts(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def write_answer(reply: Reply, model: str) -> JsonObject:
    """Return the model's message in the words of the protocol."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": reply.message.text},
        "model": reply.model or model,
        "stopReason": _STOP_REASONS.get(reply.finish_reason or "", "endTurn"),
    }
