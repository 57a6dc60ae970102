"""Which tools a session of the SDK has, and what its client is asked before they read elsewhere."""

from typing import Any

from copilot.generated.rpc import PermissionDecisionApproveForSession

from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
NAMED = {"available_tools": ["session_store_sql", "builtin:fetch_copilot_cli_documentation"]}
SEARCH = use("session_store_sql", description="test", query="SELECT count(*) FROM sessions")


async def test_the_default_tools_come_in_the_order_of_the_wire(sdk: Sdk) -> None:
    skill = sdk.cwd / ".github/skills/s/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\nb")
    sdk.env["COPILOT_ALLOW_ALL"] = "true"
    async with talking(sdk, [DONE], enable_config_discovery=True) as talk:
        await talk.say("hi")
        assert talk.tool_names() == [
            *("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
            *("view", "create", "edit", "web_fetch", "skill", "sql", "grep", "glob", "task"),
            *("read_agent", "write_agent", "list_agents", "stop_agent"),
        ]


async def test_tools_that_tell_of_other_sessions_are_there_when_they_are_named(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], **NAMED) as talk:
        await talk.say("hi")
        names = ["session_store_sql", "fetch_copilot_cli_documentation"]
        assert talk.tool_names() == names


async def test_a_client_is_asked_once_whether_past_sessions_may_be_read(sdk: Sdk) -> None:
    asked: list[Any] = []

    def judge(request: Any, _: Any) -> Any:
        asked.append(request)
        return PermissionDecisionApproveForSession()

    replies = [SEARCH, SEARCH, DONE]
    async with talking(sdk, replies, on_permission_request=judge, **NAMED) as talk:
        assert await talk.say("go") == "Done."
        assert [(one.kind, one.path) for one in asked] == [
            ("read", str(sdk.home / "session-state"))
        ]
        assert all("count(*)" in result for result in talk.tool_results())
