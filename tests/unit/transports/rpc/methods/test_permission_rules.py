"""Permission rules that clients give, over the official client."""

import json
from typing import Any

import pytest
from copilot.generated import rpc
from copilot.generated.session_events import PermissionRule

from gitkit import make_repository
from sdkkit import LIMIT, Sdk, bash, talking_here

DONE = {"text": "Done."}
MAKE = "mkdir made"


class Judge:
    """Rejects everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Any, _: Any) -> Any:
        self.asked.append(str(request.full_command_text))
        return rpc.PermissionDecisionUserNotAvailable()


async def test_rules_of_a_session_are_added_and_removed(sdk: Sdk) -> None:
    judge = Judge()
    replies = [reply for _ in range(4) for reply in (bash(MAKE), DONE)]
    async with talking_here(sdk, replies, on_permission_request=judge) as talk:
        permissions = talk.session.rpc.permissions

        async def modify(**changes: Any) -> None:
            request = rpc.PermissionsModifyRulesParams(
                scope=rpc.PermissionsModifyRulesScope.SESSION, **changes
            )
            assert (await permissions.modify_rules(request)).success

        rule = [PermissionRule(kind="shell", argument="mkdir")]
        await talk.say("one")
        await modify(add=rule)
        await talk.say("two")
        assert (sdk.cwd / "made").is_dir()
        await modify(remove=rule)
        await talk.say("three")
        await modify(add=rule)
        await modify(remove_all=True)
        await talk.say("four")
        assert judge.asked == [MAKE] * 3
        with pytest.raises(Exception, match="is wrong"):
            await modify(add=[PermissionRule(kind="shell", argument="a * b")])


async def test_rules_of_a_location_hold_for_later_sessions(sdk: Sdk) -> None:
    make_repository(sdk.cwd)
    judge = Judge()
    replies = [reply for _ in range(3) for reply in (bash(MAKE), DONE)]
    async with talking_here(sdk, replies, on_permission_request=judge) as talk:
        permissions = talk.session.rpc.permissions
        where = rpc.PermissionLocationResolveParams(working_directory=str(sdk.cwd))
        place = await permissions.locations.resolve(where)
        assert place.location_type.value == "repo"
        approval = rpc.PermissionLocationAddToolApprovalParams.from_dict(
            {
                "locationKey": place.location_key,
                "approval": {"kind": "commands", "commandIdentifiers": ["mkdir"]},
            }
        )
        assert (await permissions.locations.add_tool_approval(approval)).success
        await talk.say("one")
        (sdk.cwd / "made").rmdir()
        other = await talk.client.create_session(
            on_permission_request=judge, working_directory=str(sdk.cwd)
        )
        await other.send_and_wait("two", timeout=LIMIT)
        assert judge.asked == []
        assert (sdk.cwd / "made").is_dir()
        apply = rpc.PermissionLocationApplyParams(working_directory=str(sdk.cwd))
        applied = await other.rpc.permissions.locations.apply(apply)
        assert (applied.changed, applied.applied_rule_count) == (False, 0)
        assert [rule.argument for rule in applied.applied_rules] == ["mkdir"]
        elsewhere = await talk.client.create_session(
            on_permission_request=judge, working_directory=str(sdk.home)
        )
        applied = await elsewhere.rpc.permissions.locations.apply(apply)
        assert (applied.changed, applied.applied_rule_count) == (True, 1)
        removal = rpc.PermissionsModifyRulesParams(
            scope=rpc.PermissionsModifyRulesScope.LOCATION, remove_all=True
        )
        await other.rpc.permissions.modify_rules(removal)
        await other.send_and_wait("three", timeout=LIMIT)
        assert judge.asked == [MAKE]
        saved = json.loads((sdk.home / "permissions-config.json").read_text())
        assert saved["locations"][place.location_key]["tool_approvals"] == []


async def test_permissions_are_configured_as_a_whole(sdk: Sdk) -> None:
    judge = Judge()
    replies = [bash(MAKE), bash("rm made"), DONE]
    async with talking_here(sdk, replies, on_permission_request=judge) as talk:
        permissions = talk.session.rpc.permissions
        given = {
            "rules": {
                "approved": [{"kind": "shell", "argument": "mkdir"}],
                "denied": [{"kind": "shell", "argument": "rm"}],
            },
            "paths": {"additionalDirectories": [str(sdk.home)], "includeTempDirectory": False},
            "urls": {"unrestricted": True, "initialAllowed": ["example.com"]},
            "approveAllReadPermissionRequests": True,
        }
        params = rpc.PermissionsConfigureParams.from_dict(given)
        assert (await permissions.configure(params)).success
        await talk.say("go")
        assert judge.asked == []
        assert "denied" in talk.tool_results()[-1].lower()
        listed = await permissions.paths.list()
        assert listed.directories == [str(sdk.cwd), str(sdk.home)]
        policies = {
            "additionalContentExclusionPolicies": [
                {"rules": [], "last_updated_at": 1, "scope": "all"}
            ]
        }
        with pytest.raises(Exception, match="policy files of the machine"):
            await talk.client._client.request(
                "session.permissions.configure",
                {"sessionId": talk.session.session_id, **policies},
            )


async def test_paths_trust_and_addresses_are_asked_about(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        permissions = talk.session.rpc.permissions
        inside = talk.session.workspace_path
        for path, allowed in (
            (str(sdk.cwd / "a"), True),
            ("b/../c", True),
            ("../x", False),
            ("/etc/passwd", False),
        ):
            request = rpc.PermissionPathsAllowedCheckParams(path=path)
            found = await permissions.paths.is_path_within_allowed_directories(request)
            assert found.allowed is allowed
        for path, allowed in ((f"{inside}/files/x", True), (str(sdk.cwd), False)):
            check = rpc.PermissionPathsWorkspaceCheckParams(path=path)
            assert (await permissions.paths.is_path_within_workspace(check)).allowed is allowed
        folder = str(sdk.cwd)
        trust = permissions.folder_trust
        assert not (await trust.is_trusted(rpc.FolderTrustCheckParams(path=folder))).trusted
        assert (await trust.add_trusted(rpc.FolderTrustAddParams(path=folder))).success
        assert (await trust.is_trusted(rpc.FolderTrustCheckParams(path=folder))).trusted
        for enabled in (True, False):
            switch = rpc.PermissionUrlsSetUnrestrictedModeParams(enabled=enabled)
            assert (await permissions.urls.set_unrestricted_mode(switch)).success
        assert (await permissions.set_required(rpc.PermissionsSetRequiredRequest(True))).success
        shown = rpc.PermissionPromptShownNotification(message="May I?")
        assert (await permissions.notify_prompt_shown(shown)).success
        moved = rpc.PermissionPathsUpdatePrimaryParams(path=str(sdk.home))
        assert (await permissions.paths.update_primary(moved)).success
        assert (await permissions.paths.list()).primary == str(sdk.home)
