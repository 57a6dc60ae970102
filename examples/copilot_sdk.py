"""Drives Trimtab with the official Copilot SDK for Python: a tool, a permission, an answer."""

import asyncio
import shutil

from copilot import CopilotClient, define_tool
from copilot.client import RuntimeConnection
from copilot.generated.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject
from pydantic import BaseModel


class City(BaseModel):
    city: str


@define_tool(description="The weather in a city")
async def weather(params: City) -> str:
    return f"It is sunny in {params.city}."


def judge(request, _):
    """Everything may be read and our own tools called; nothing else."""
    if request.kind in ("read", "custom-tool"):
        return PermissionDecisionApproveOnce()
    return PermissionDecisionReject(feedback="This example only looks.")


async def main() -> None:
    connection = RuntimeConnection.for_stdio(path=shutil.which("trimtab"))
    async with CopilotClient(connection=connection) as client:
        session = await client.create_session(on_permission_request=judge, tools=[weather])
        answer = await session.send_and_wait("What is the weather in Bonn?")
        print(answer.data.content)


asyncio.run(main())
