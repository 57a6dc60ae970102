"""Canvases: panels that a client declares and shows, opened by clients and by the model."""

from typing import Any

import pytest
from copilot.canvas import (
    CanvasAction,
    CanvasDeclaration,
    CanvasError,
    CanvasHandler,
    CanvasProviderIdentity,
)
from copilot.client import RuntimeConnection
from copilot.generated import rpc
from copilot.session import PermissionHandler

from clikit import TRIMTAB
from sdkkit import Sdk, talking, use

COUNTER = CanvasDeclaration(
    id="counter",
    display_name="Counter",
    description="Counts",
    input_schema={"type": "object", "properties": {"start": {"type": "number"}}},
    actions=[
        CanvasAction(
            name="add",
            description="Adds",
            input_schema={"type": "object", "properties": {"amount": {"type": "number"}}},
        )
    ],
)


class Panels(CanvasHandler):
    """Shows canvases, and notes what it is asked for."""

    def __init__(self) -> None:
        self.opened: list[Any] = []
        self.closed: list[str] = []
        self.actions: list[Any] = []

    async def on_open(self, ctx: Any) -> Any:
        if ctx.instance_id == "broken":
            raise CanvasError("no_paint", "out of paint")
        self.opened.append(ctx)
        return rpc.CanvasProviderOpenResult(url="https://panel.test/1", title="A count")

    async def on_close(self, ctx: Any) -> None:
        self.closed.append(ctx.instance_id)

    async def on_action(self, ctx: Any) -> Any:
        self.actions.append(ctx)
        if ctx.input == {"amount": 0}:
            return {"textResultForLlm": "nothing to add", "resultType": "success"}
        return {"count": 42}


def declare(panels: Panels, **more: Any) -> dict[str, Any]:
    return {"canvases": [COUNTER], "canvas_handler": panels, **more}


async def open_panel(session: Any, instance: str = "one", **input_: Any) -> Any:
    request = rpc.CanvasOpenRequest(canvas_id="counter", instance_id=instance, input=input_)
    return await session.rpc.canvas.open(request)


async def list_open(session: Any) -> list[str]:
    return [one.instance_id for one in (await session.rpc.canvas.list_open()).open_canvases]


async def test_a_clients_canvases_are_listed_opened_used_and_closed(sdk: Sdk) -> None:
    panels = Panels()
    async with talking(sdk, [{"text": "Done."}], **declare(panels)) as talk:
        (listed,) = (await talk.session.rpc.canvas.list()).canvases
        assert (listed.canvas_id, listed.display_name, listed.description) == (
            "counter",
            "Counter",
            "Counts",
        )
        opened = await open_panel(talk.session, start=10)
        assert (opened.url, opened.title) == ("https://panel.test/1", "A count")
        (asked,) = panels.opened
        assert (asked.canvas_id, asked.instance_id, asked.input) == (
            "counter",
            "one",
            {"start": 10},
        )
        assert asked.session.working_directory == str(sdk.cwd)
        assert await list_open(talk.session) == ["one"]
        assert [canvas.instance_id for canvas in talk.session.open_canvases] == ["one"]
        answer = await talk.session.rpc.canvas.action.invoke(
            rpc.CanvasActionInvokeRequest(action_name="add", instance_id="one", input={"amount": 5})
        )
        assert answer == {"result": {"count": 42}}
        assert panels.actions[0].input == {"amount": 5}
        await talk.session.rpc.canvas.close(rpc.CanvasCloseRequest(instance_id="one"))
        assert panels.closed == ["one"]
        assert await list_open(talk.session) == []
        assert [kind for kind in talk.heard.types if "canvas" in kind] == [
            "session.canvas.opened",
            "session.canvas.recorded",
            "session.canvas.closed",
            "session.canvas.removed",
        ]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown canvas": ({"canvas_id": "abacus", "instance_id": "x"}, 'No canvas "abacus"'),
    "another provider": (
        {"canvas_id": "counter", "instance_id": "x", "extension_id": "other"},
        '"other/counter" is not registered',
    ),
    "no instance": ({"canvas_id": "counter", "instance_id": ""}, "Invalid canvas instance ID"),
    "wrong input": (
        {"canvas_id": "counter", "instance_id": "x", "input": {"start": "ten"}},
        "Invalid input for canvas",
    ),
    "a client that fails": ({"canvas_id": "counter", "instance_id": "broken"}, "out of paint"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_canvas_that_cannot_be_opened_is_an_error_that_says_why(
    sdk: Sdk, case: str
) -> None:
    fields, message = WRONG[case]
    async with talking(sdk, [], **declare(Panels())) as talk:
        with pytest.raises(Exception, match=message):
            await talk.session.rpc.canvas.open(rpc.CanvasOpenRequest(**fields))
        assert await list_open(talk.session) == []


async def test_what_is_not_open_is_neither_used_nor_closed(sdk: Sdk) -> None:
    async with talking(sdk, [], **declare(Panels())) as talk:
        await open_panel(talk.session)
        canvas = talk.session.rpc.canvas
        for request, message in (
            (("add", "two", None), '"two" is not open'),
            (("paint", "one", None), 'Unknown action "paint"'),
            (("add", "one", {"amount": "x"}), "Invalid input for action"),
        ):
            name, instance, given = request
            with pytest.raises(Exception, match=message):
                await canvas.action.invoke(
                    rpc.CanvasActionInvokeRequest(
                        action_name=name, instance_id=instance, input=given
                    )
                )
        with pytest.raises(Exception, match='"two" is not open'):
            await canvas.close(rpc.CanvasCloseRequest(instance_id="two"))


@pytest.mark.parametrize("identity", [None, CanvasProviderIdentity(id="app:1", name="App")])
@pytest.mark.parametrize("warm", [True, False])
async def test_open_canvases_come_back_when_a_session_is_resumed(
    sdk: Sdk, identity: Any, warm: bool
) -> None:
    first, second = Panels(), Panels()
    more = {"canvas_provider": identity}
    async with talking(sdk, [{"text": "Done."}], **declare(first, **more)) as talk:
        await open_panel(talk.session, "kept", start=3)
        await open_panel(talk.session, "gone")
        await talk.session.rpc.canvas.close(rpc.CanvasCloseRequest(instance_id="gone"))
        await talk.say("go")
        if not warm:
            await talk.session.disconnect()
        resumed = await talk.client.resume_session(
            talk.session.session_id,
            on_permission_request=PermissionHandler.approve_all,
            **declare(second, **more),
        )
        assert [canvas.instance_id for canvas in resumed.open_canvases] == ["kept"]
        (asked,) = second.opened
        assert (asked.instance_id, asked.input) == ("kept", {"start": 3})
        await resumed.disconnect()
        bare = await talk.client.resume_session(
            talk.session.session_id, on_permission_request=PermissionHandler.approve_all
        )
        assert bare.open_canvases == []
        assert await list_open(bare) == []


async def test_the_model_opens_and_uses_canvases_if_the_client_shows_them(sdk: Sdk) -> None:
    panels = Panels()
    script = [
        use("list_canvas_capabilities", canvasId="counter"),
        use("open_canvas", canvasId="counter", instanceId="mine"),
        use("invoke_canvas_action", instanceId="mine", actionName="add", input={"amount": 1}),
        use("invoke_canvas_action", instanceId="mine", actionName="add", input={"amount": 0}),
        use("open_canvas", canvasId="abacus", instanceId="other"),
        {"text": "Done."},
    ]
    asked: list[Any] = []

    def approve(request: Any, invocation: Any) -> Any:
        asked.append(request.tool_name)
        return PermissionHandler.approve_all(request, invocation)

    options = declare(panels, request_canvas_renderer=True, on_permission_request=approve)
    async with talking(sdk, script, **options) as talk:
        assert talk.session.capabilities["ui"]["canvases"] is True
        await talk.say("count")
        listed, opened, used, nothing, unknown = talk.tool_results()
        assert '"name": "add"' in listed
        assert '"url": "https://panel.test/1"' in opened
        assert used == '{\n  "result": {\n    "count": 42\n  }\n}'
        assert nothing == "nothing to add"
        assert unknown == 'Canvas operation failed: No canvas "abacus" is registered.'
        assert asked == ["open_canvas", *["invoke_canvas_action"] * 2, "open_canvas"]


async def test_without_a_client_that_shows_canvases_the_model_has_no_tools_for_them(
    sdk: Sdk,
) -> None:
    async with talking(sdk, [{"text": "Done."}], **declare(Panels())) as talk:
        assert talk.session.capabilities["ui"]["canvases"] is False
        await talk.say("go")
        assert not [name for name in talk.tool_names() if "canvas" in name]


async def test_a_canvas_whose_client_leaves_is_announced_as_unavailable(sdk: Sdk) -> None:
    shared: Any = RuntimeConnection.for_tcp(path=TRIMTAB, connection_token="secret")
    async with talking(sdk, [], connection=shared) as talk:
        uri = f"localhost:{talk.client.runtime_port}"
        connection = RuntimeConnection.for_uri(uri, connection_token="secret")
        async with sdk.client(connection) as other:
            joined = await other.resume_session(
                talk.session.session_id,
                on_permission_request=PermissionHandler.approve_all,
                **declare(Panels()),
            )
            await open_panel(joined)
            assert await list_open(talk.session) == ["one"]
        await talk.heard.until("session.canvas.unavailable")
        assert await list_open(talk.session) == []
