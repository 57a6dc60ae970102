"""The server of `trimtab mcp serve`: runs of the agent, past sessions, and commands."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.contracts.customization import Skill
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.options import Client, SessionOptions
from trimtab.customize.overview import gather
from trimtab.customize.skills import read_body
from trimtab.host.loading import LoadRuntime, load_runtime
from trimtab.host.requests import handle_request
from trimtab.loop.processors.skills import fill_arguments
from trimtab.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RemoteError
from trimtab.session.archive import Archive
from trimtab.transports.mcp.service import ClientLink, drop_input
from trimtab.version import __version__

URI = "trimtab://sessions/"
MAX_LISTED = 200
INSTRUCTIONS = (
    "`run` lets the agent work on a prompt in the folder that this server was started in; it may "
    "change files there as far as the rules allow. Transcripts of sessions are resources."
)
TEXT = {"type": "string"}
TOOLS: list[JsonObject] = [
    {
        "name": "run",
        "title": "Run the agent",
        "description": "Let the agent work on a prompt, and return its answer.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": {**TEXT, "description": "The task, in words"},
                "sessionId": {**TEXT, "description": "A session to continue"},
                "model": {**TEXT, "description": "The model to use instead of the usual one"},
            },
            "required": ["prompt"],
        },
        "annotations": {"readOnlyHint": False, "openWorldHint": True},
    },
    {
        "name": "list_sessions",
        "title": "List sessions",
        "description": "List past sessions, the last used first.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "read_session",
        "title": "Read a session",
        "description": "Return the transcript of a session as Markdown.",
        "inputSchema": {
            "type": "object",
            "properties": {"sessionId": {**TEXT, "description": "The id of the session"}},
            "required": ["sessionId"],
        },
        "annotations": {"readOnlyHint": True},
    },
]
CAPABILITIES: JsonObject = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}


class OwnService:
    """The service for one client, in one folder."""

    def __init__(
        self,
        env: Mapping[str, str],
        cwd: str,
        link: ClientLink,
        load: LoadRuntime = load_runtime,
    ) -> None:
        self._env = env
        self._load = load
        self._cwd = cwd
        self._link = link
        self._archive = Archive(env, cwd=cwd)

    async def describe(self) -> JsonObject:
        info = {"name": "trimtab", "title": "Trimtab", "version": __version__}
        return {"capabilities": CAPABILITIES, "serverInfo": info, "instructions": INSTRUCTIONS}

    async def aclose(self) -> None:
        """Do nothing: a run ends with its call."""

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        methods: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "logging/setLevel": self._set_level,
        }
        if method not in methods:
            raise RemoteError(f"Method not found: {method[:100]}", METHOD_NOT_FOUND)
        return await methods[method](drop_input(params))

    async def take_notice(self, method: str, params: JsonObject) -> None:
        """Ignore notifications: this server has no use for any."""

    async def listen(self, wanted: JsonObject) -> None:
        """Return at once: nothing that this server lists is announced."""

    async def _set_level(self, params: JsonObject) -> JsonObject:
        """Accept any level: this server logs nothing to its clients."""
        return {}

    async def _list_tools(self, params: JsonObject) -> JsonObject:
        return {"tools": TOOLS}

    async def _call(self, params: JsonObject) -> JsonObject:
        given = params.get("arguments")
        arguments: JsonObject = given if isinstance(given, dict) else {}
        tool = next((tool for tool in TOOLS if tool["name"] == params.get("name")), None)
        if tool is None:
            raise RemoteError(f"Unknown tool: {str(params.get('name'))[:100]}", INVALID_PARAMS)
        schema = tool["inputSchema"]
        for name in schema.get("required", ()):
            if not isinstance(arguments.get(name), str):
                return _fail(f"{name} is missing; set it to a text.")
        try:
            match tool["name"]:
                case "run":
                    return await self._run(arguments, params)
                case "list_sessions":
                    return _say(await asyncio.to_thread(self._describe_sessions))
                case _:
                    text = await asyncio.to_thread(self._transcript, arguments["sessionId"])
                    return _say(text)
        except TrimtabError as error:
            return _fail(error.message)

    async def _run(self, arguments: JsonObject, params: JsonObject) -> JsonObject:
        """Run the agent; nobody is asked, so that what needs a question is denied."""
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        options = SessionOptions(cwd=self._cwd, model=arguments.get("model"))
        client = Client(on_event=self._report(token))
        runtime = self._load(self._env)
        session = arguments.get("sessionId")
        live = (
            await runtime.create(options, client)
            if session is None
            else await runtime.resume(self._archive.folder(session).id, options, client)
        )
        try:
            handle_request(live, arguments["prompt"])
            stop = await live.finished()
            answer = live.answer
        finally:
            await live.close()
        result = {"sessionId": live.id, "stop": stop.reason, "answer": answer}
        text = answer if not stop.message else f"{answer}\n{stop.message}".strip()
        content = [{"type": "text", "text": text or "The agent said nothing."}]
        return {"content": content, "structuredContent": result, "isError": bool(stop.exit_code)}

    def _report(self, token: Any) -> Callable[[Event, bytes], None] | None:
        """Return a function that tells the client which tools run, if it wants to know."""
        if token is None:
            return None
        steps = 0

        def report(event: Event, _: bytes) -> None:
            nonlocal steps
            if event.type == "tool.execution_start":
                steps += 1
                told = {"progressToken": token, "progress": steps, "message": event.data.tool_name}
                self._link.notify("notifications/progress", told)

        return report

    def _describe_sessions(self) -> str:
        summaries = self._archive.list()[:MAX_LISTED]
        return msgspec.json.encode(
            [
                {
                    "sessionId": session.id,
                    "title": session.name or session.title,
                    "folder": session.cwd,
                    "updatedAt": session.updated_at,
                }
                for session in summaries
            ]
        ).decode()

    def _transcript(self, session: str) -> str:
        return "".join(self._archive.export(session, "md"))

    async def _list_resources(self, params: JsonObject) -> JsonObject:
        summaries = await asyncio.to_thread(self._archive.list)
        return {
            "resources": [
                {
                    "uri": URI + session.id,
                    "name": session.name or session.title or session.id,
                    "description": f"Transcript of a session in {session.cwd}",
                    "mimeType": "text/markdown",
                }
                for session in summaries[:MAX_LISTED]
            ]
        }

    async def _list_templates(self, params: JsonObject) -> JsonObject:
        template = {
            "uriTemplate": URI + "{id}",
            "name": "session",
            "description": "Transcript of a session",
            "mimeType": "text/markdown",
        }
        return {"resourceTemplates": [template]}

    async def _read_resource(self, params: JsonObject) -> JsonObject:
        uri = str(params.get("uri"))
        try:
            if not uri.startswith(URI):
                raise RemoteError(f"Resource not found: {uri[:200]}", INVALID_PARAMS, {"uri": uri})
            text = await asyncio.to_thread(self._transcript, uri.removeprefix(URI))
        except TrimtabError as error:
            raise RemoteError(error.message, INVALID_PARAMS, {"uri": uri}) from None
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}

    def _commands(self) -> dict[str, Skill]:
        found = gather(self._env, SessionOptions(cwd=self._cwd)).skills.skills
        return {
            name: skill for name, skill in found.items() if skill.user_invocable and skill.enabled
        }

    async def _list_prompts(self, params: JsonObject) -> JsonObject:
        return {
            "prompts": [
                {
                    "name": name,
                    "description": skill.description,
                    "arguments": [{"name": "arguments", "description": skill.argument_hint}],
                }
                for name, skill in (await asyncio.to_thread(self._commands)).items()
            ]
        }

    async def _get_prompt(self, params: JsonObject) -> JsonObject:
        name = str(params.get("name"))
        commands = await asyncio.to_thread(self._commands)
        if name not in commands:
            raise RemoteError(f"Unknown prompt: {name[:100]}", INVALID_PARAMS)
        words = str((params.get("arguments") or {}).get("arguments") or "")
        body = await asyncio.to_thread(read_body, commands[name])
        content = {"type": "text", "text": fill_arguments(body, words).strip()}
        return {
            "description": commands[name].description,
            "messages": [{"role": "user", "content": content}],
        }


def _say(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": False}


def _fail(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": True}
