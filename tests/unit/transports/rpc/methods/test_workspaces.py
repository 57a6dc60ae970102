"""Files, checkpoints and metadata in the folder of a session, over the official client."""

import pytest
from copilot.generated import rpc

from sdkkit import Sdk, talking_here


def rename(source: str, destination: str) -> rpc.WorkspacesRenamePathRequest:
    return rpc.WorkspacesRenamePathRequest(source=source, destination=destination)


async def test_files_of_the_workspace_are_measured_and_renamed(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        files = talk.session.rpc.workspaces
        await files.create_file(rpc.WorkspacesCreateFileRequest(path="a.txt", content="hello"))
        found = await files.stat_file(rpc.WorkspacesStatFileRequest(path="a.txt"))
        assert (found.is_file, found.is_directory, found.size) == (True, False, 5)
        assert found.mtime_ms > 0
        await files.rename_path(rename("a.txt", "sub/b.txt"))
        assert (await files.list_files()).files == ["sub/b.txt"]
        for source, target in (("sub/b.txt", "../out.txt"), ("../plan.md", "b.txt")):
            with pytest.raises(Exception, match="within the workspace files directory"):
                await files.rename_path(rename(source, target))
        with pytest.raises(Exception, match="No such file"):
            await files.stat_file(rpc.WorkspacesStatFileRequest(path="a.txt"))


async def test_summaries_are_added_and_cut_off(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        files = talk.session.rpc.workspaces
        for number, title in enumerate(("First | part", "", "Third"), 1):
            added = await files.add_summary(rpc.WorkspacesAddSummaryRequest("Text.", title))
            assert added.workspace["summary_count"] == number
        listed = (await files.list_checkpoints()).checkpoints
        assert [one.title for one in listed] == ["First   part", "Checkpoint", "Third"]
        assert listed[0].filename == "001-first-part.md"
        await files.truncate_summaries(rpc.WorkspacesTruncateSummariesRequest(keep_count=1))
        assert len((await files.list_checkpoints()).checkpoints) == 1
        left = await files.truncate_summaries(rpc.WorkspacesTruncateSummariesRequest(keep_count=-1))
        assert left.workspace.summary_count == 0
        again = await files.add_summary(rpc.WorkspacesAddSummaryRequest("Text.", "Fourth"))
        assert again.summary["checkpointNumber"] == 1
        (listed_again,) = (await files.list_checkpoints()).checkpoints
        assert listed_again.title == "Fourth"


async def test_an_objective_is_kept_for_clients(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        files = talk.session.rpc.workspaces
        assert (await files.read_autopilot_objective()).content is None
        assert not (await files.delete_autopilot_objective()).deleted
        for operation in ("create", "update"):
            request = rpc.WorkspacesWriteAutopilotObjectiveRequest(content=operation)
            assert (await files.write_autopilot_objective(request)).operation == operation
        assert (await files.autopilot_objective_exists()).exists
        assert (await files.read_autopilot_objective()).content == "update"
        assert (await files.delete_autopilot_objective()).deleted
        assert not (await files.autopilot_objective_exists()).exists


async def test_a_context_is_recorded_and_a_persons_name_kept(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        files = talk.session.rpc.workspaces
        request = rpc.WorkspacesUpdateMetadataRequest(
            context={"cwd": "/elsewhere", "branch": "main"}, name="Made up"
        )
        found = (await files.update_metadata(request)).workspace
        assert (found.cwd, found.branch, found.name) == ("/elsewhere", "main", "Made up")
        await talk.session.rpc.name.set(rpc.NameSetRequest(name="Refit"))
        assert (await files.update_metadata(request)).workspace.name == "Refit"
        snapshot = await talk.session.rpc.metadata.snapshot()
        assert snapshot.working_directory == str(sdk.cwd)
