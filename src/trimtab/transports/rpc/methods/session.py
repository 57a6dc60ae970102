"""Opens, prompts, aborts, reads, closes and deletes sessions."""

import os
from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionError, SessionInfo, SessionWarning
from trimtab.contracts.provider import AnswerSchema
from trimtab.contracts.run import Prompt
from trimtab.host.requests import Request, handle_request
from trimtab.runtime.live import ABORTED
from trimtab.transports.rpc import open as opening
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.listing import Filter, describe_session, list_sessions
from trimtab.transports.rpc.protocol import FAILED, RpcError, Then
from trimtab.transports.rpc.setup import SessionSettings
from trimtab.transports.rpc.token_provider import TokenProvider, fill_in_token, renew_in_time

methods = Methods()


@methods.on("session.create", SessionSettings)
async def create(call: Call, params: SessionSettings) -> Then:
    provider = TokenProvider.of(call.peer, params)
    params = await fill_in_token(provider, params)
    opened = await opening.create(call.server, call.peer, params)
    renew_in_time(call.server, call.server.session(opened.result["sessionId"]), provider)
    return opened


@methods.on("session.resume", SessionSettings)
async def resume(call: Call, params: SessionSettings) -> Then:
    provider = TokenProvider.of(call.peer, params)
    params = await fill_in_token(provider, params)
    opened = await opening.resume(call.server, call.peer, params)
    renew_in_time(call.server, call.session, provider)
    return opened


class ResponseFormat(msgspec.Struct, rename="camel"):
    """The format of the answer: JSON by a schema, or text."""

    type: Literal["json_schema", "text"]
    json_schema: AnswerSchema | None = None


class Send(msgspec.Struct, kw_only=True, rename="camel"):
    prompt: str
    attachments: tuple[JsonObject, ...] = ()
    mode: Literal["enqueue", "immediate", "interactive", "plan", "autopilot"] = "enqueue"
    """The way of delivery; older clients send the agent's mode here."""
    agent_mode: str | None = None
    request_headers: dict[str, str] = {}
    display_prompt: str | None = None
    source: str | None = None
    response_format: ResponseFormat | None = None


def name_attachment(attachment: JsonObject) -> JsonObject:
    """Return a file or directory with the name that clients require in events."""
    path = attachment.get("path") or attachment.get("filePath")
    if attachment.get("displayName") or not isinstance(path, str):
        return attachment
    return {**attachment, "displayName": os.path.basename(path.rstrip("/")) or path}


def read_prompt(params: Send) -> Prompt:
    """Return the prompt of a client."""
    response_format = params.response_format
    source = params.source or "user"
    return Prompt(
        text=params.prompt,
        display=params.display_prompt,
        attachments=tuple(map(name_attachment, params.attachments)),
        mode="immediate" if params.mode == "immediate" else "enqueue",
        headers=params.request_headers,
        source=source if source.startswith("agent-") or source == "system" else "user",
        answer_schema=response_format.json_schema if response_format else None,
    )


def accept(call: Call, params: Send) -> Request:
    """Hand a client's prompt to the session."""
    live = call.session.live
    prompt = read_prompt(params)
    mode = params.agent_mode
    if mode is None and params.mode not in ("enqueue", "immediate"):
        mode = params.mode
    if mode is not None:
        if mode not in ("interactive", "plan", "autopilot"):
            raise UsageError(
                f"agentMode {mode!r} is not available; use interactive, plan or autopilot."
            )
        live.controls.set_mode(mode)  # type: ignore[arg-type]
    return handle_request(live, prompt)


@methods.on("session.send", Send)
async def send(call: Call, params: Send) -> Then:
    participant, session_id = call.participant, call.session.id
    participant.hold()
    try:
        message_id = accept(call, params).id
    except BaseException:
        participant.release(session_id)
        raise
    return Then({"messageId": message_id}, lambda: participant.release(session_id))


@methods.on("session.sendAndWait", Send)
async def send_and_wait(call: Call, params: Send) -> JsonObject:
    """Wait until the prompt is answered; return the last message of the answer."""
    request = accept(call, params)
    answered = await request.finished()
    if answered.error is not None:
        about = {"completionEventId": answered.error.id}
        raise RpcError(FAILED, f"Session error: {answered.error.data.message}", about)
    result: JsonObject = {"messageId": request.id, "aborted": answered.aborted}
    if answered.end is not None:
        result["completionEventId"] = answered.end.id
    if answered.response is not None:
        result["response"] = msgspec.Raw(answered.response[1])
    return result


class Message(msgspec.Struct, kw_only=True, rename="camel"):
    prompt: str
    display_prompt: str | None = None
    attachments: tuple[JsonObject, ...] = ()
    source: str | None = None


class SendMessages(msgspec.Struct, kw_only=True, rename="camel"):
    messages: tuple[Message, ...]
    mode: Literal["enqueue", "immediate"] = "enqueue"
    agent_mode: str | None = None
    request_headers: dict[str, str] = {}
    response_format: ResponseFormat | None = None
    wait: bool = False


@methods.on("session.sendMessages", SendMessages)
async def send_messages(call: Call, params: SendMessages) -> JsonObject:
    """Add several messages, which one turn answers together."""
    if not params.messages:
        raise UsageError("messages is empty; give at least one message.")
    live = call.session.live
    sends = [
        Send(
            prompt=message.prompt,
            display_prompt=message.display_prompt,
            attachments=message.attachments,
            source=message.source,
            mode=params.mode,
            agent_mode=params.agent_mode,
            request_headers=params.request_headers,
            response_format=params.response_format,
        )
        for message in params.messages
    ]
    ids = []
    if live.busy and params.mode == "immediate":
        ids = [accept(call, message).id for message in sends[:-1]]
    elif len(sends) > 1 and (live.busy or live.inbox.pending):
        raise UsageError(
            "The agent is working; send several messages with the mode immediate, or wait for "
            "session.idle."
        )
    else:
        ids = [await live.add_message(read_prompt(message)) for message in sends[:-1]]
    request = accept(call, sends[-1])
    if params.wait:
        await request.finished()
    return {"messageIds": [*(message_id for message_id in ids if message_id), request.id]}


@methods.on("session.cancelAllBackgroundAgents")
async def cancel_agents(call: Call, params: Nothing) -> int:
    """Stop every agent that works in the background; return how many."""
    live = call.server.session(call.session_id).live
    if not live.controls.has_agents:
        return 0
    working = [
        task["id"]
        for task in live.tasks.describe()
        if task["type"] == "agent"
        and task.get("executionMode") == "background"
        and task.get("status") == "running"
    ]
    return sum(live.tasks.stop(agent_id) for agent_id in working)


@methods.on("session.abort")
async def abort(call: Call, params: Nothing) -> JsonObject:
    await call.session.live.abort(ABORTED)
    return {"success": True}


@methods.on("session.interruptMainTurn")
async def interrupt(call: Call, params: Nothing) -> JsonObject:
    busy = call.session.live.busy
    await call.session.live.abort(ABORTED)
    return {"interrupted": busy}


@methods.on("session.getMessages")
async def get_messages(call: Call, params: Nothing) -> JsonObject:
    return {"events": call.session.live.read_events()}


@methods.on("session.detach")
async def detach(call: Call, params: Nothing) -> JsonObject:
    """Remove a client; with the last one the session is closed, and stays on disk."""
    hosted = call.server.sessions.get(call.session_id or "")
    if hosted is None:
        return {"success": True}
    others = [
        participant for participant in hosted.participants if participant.client is not call.peer
    ]
    if not others:
        await call.server.close_session(hosted.id)
        return {"success": True}
    before, commands = hosted.capabilities, hosted.commands
    hosted.leave(call.peer)
    hosted.announce_changes(before, commands)
    return {"success": True}


@methods.on("session.destroy")
async def destroy(call: Call, params: Nothing) -> JsonObject:
    """Close the session. It may have been closed by another client: that is no error."""
    await call.server.close_session(call.session_id or "")
    return {"success": True}


class Shutdown(msgspec.Struct):
    type: str = "routine"
    reason: str | None = None


@methods.on("session.shutdown", Shutdown)
async def shut_down(call: Call, params: Shutdown) -> None:
    await call.server.close_session(call.session_id or "")


@methods.on("session.suspend")
async def suspend(call: Call, params: Nothing) -> None:
    """Close the session; calls that wait for a client continue when it is resumed."""
    await call.server.close_session(call.session_id or "", suspend=True)


@methods.on("session.delete")
async def delete(call: Call, params: Nothing) -> JsonObject:
    server, session_id = call.server, call.session_id or ""
    await server.close_session(session_id)
    if not server.runtime.store.exists(session_id):
        return {"success": False, "error": f"Session not found: {session_id}"}
    server.archive.delete(session_id)
    server.tell("deleted", session_id)
    return {"success": True}


class ListSessions(msgspec.Struct):
    filter: Filter | None = None


@methods.on("session.list", ListSessions)
async def list_all(call: Call, params: ListSessions) -> JsonObject:
    return {"sessions": list_sessions(call.server, params.filter)}


@methods.on("session.getMetadata")
async def get_metadata(call: Call, params: Nothing) -> JsonObject:
    server, session_id = call.server, call.session_id or ""
    if not server.runtime.store.exists(session_id):
        return {}
    return {"session": describe_session(server.archive.summary(session_id))}


@methods.on("session.getLastId")
async def get_last_id(call: Call, params: Nothing) -> JsonObject:
    latest = call.server.runtime.store.latest()
    return {"sessionId": latest} if latest else {}


@methods.on("session.getForeground")
async def get_foreground(call: Call, params: Nothing) -> JsonObject:
    """Return nothing: the server has no terminal interface."""
    return {}


@methods.on("session.setForeground")
async def set_foreground(call: Call, params: Nothing) -> JsonObject:
    if call.session_id not in call.server.sessions:
        return {"success": False, "error": f"Session not found: {call.session_id}"}
    return {"success": False, "error": "Not running in TUI+server mode"}


class Log(msgspec.Struct):
    message: str
    level: Literal["info", "warning", "error"] = "info"
    ephemeral: bool = False
    type: str | None = None
    url: str | None = None
    tip: str | None = None


@methods.on("session.log", Log)
async def log(call: Call, params: Log) -> JsonObject:
    data: Any
    kind = params.type or "notification"
    if params.level == "error":
        data = SessionError(error_type=kind, message=params.message, url=params.url)
    elif params.level == "warning":
        data = SessionWarning(warning_type=kind, message=params.message, url=params.url)
    else:
        data = SessionInfo(info_type=kind, message=params.message, url=params.url, tip=params.tip)
    event = call.session.live.emit(data, ephemeral=params.ephemeral)
    return {"eventId": event.id}
