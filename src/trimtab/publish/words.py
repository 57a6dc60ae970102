"""The git commands /branch, /commit, /sync, /merge, /create-pr, /create-draft-pr, /update-pr."""

import asyncio
import re
import shlex
import shutil
from collections.abc import Awaitable, Callable

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import Run
from trimtab.contracts.text import count
from trimtab.loop.processors.pull_requests import find_address
from trimtab.publish.repository import Forge, Repository
from trimtab.publish.steps import StepFailed, Steps
from trimtab.publish.writing import Author, FindWriter, Text, read_branch

CREATE_TOOL, UPDATE_TOOL = "create_pull_request", "update_pull_request"
LIST_TOOL = "list_pull_requests"


class Words:
    """Carries out one git command. Each method returns a sentence for the person."""

    def __init__(
        self,
        run: Run,
        folder: str,
        find_writer: FindWriter,
        path: str,
        *,
        names_branches: bool = True,
    ) -> None:
        """`names_branches` lets the model name new branches; otherwise they have the words."""
        self._folder = folder
        self._repository = Repository(folder)
        self._steps = Steps(run)
        self._author = Author(run, find_writer)
        self._path = path
        self._names_branches = names_branches

    async def commit(self, hint: str) -> str:
        """Commit what is staged, or everything if nothing is; the model writes the message."""
        repository = self._repository
        if conflicts := repository.conflicts:
            raise UsageError(f"{', '.join(conflicts[:5])} has conflicts; resolve them first.")
        staged = repository.staged
        files = staged or repository.changed
        if not files:
            return "There is nothing to commit."
        changes = await asyncio.to_thread(repository.read_changes)
        text = await self._author.write_message(changes, repository.read_subjects(), hint)
        commit = shlex.join(["git", "commit", "-q", *message_options(text)])
        command = commit if staged else f"git add -A && {commit}"
        await self._steps.run(command, f"Commit {count(len(files), 'file')}")
        where = repository.branch or "a detached HEAD"
        return (
            f"Committed {count(len(files), 'file')} on {where}: "
            f"{repository.commit} {repository.subject}"
        )

    async def sync(self, _hint: str) -> str:
        """Bring the branch and its remote to the same commits: pull, then push."""
        repository, branch, remote = self._repository, *self._require_branch()
        await self._steps.run(shlex.join(["git", "fetch", "-q", remote]), f"Fetch from {remote}")
        done = []
        if upstream := repository.upstream:
            done += await self._pull(upstream)
        ahead = repository.count_ahead(upstream) if upstream else 1
        if ahead:
            await self._push(branch, remote)
            done.append(f"pushed {branch} to {remote}")
        return f"{'; '.join(done)}." if done else f"{branch} and {upstream} are the same."

    async def _pull(self, upstream: str) -> list[str]:
        repository = self._repository
        behind = repository.count_ahead("HEAD", upstream)
        if not behind:
            return []
        ahead = repository.count_ahead(upstream)
        how = "--no-edit" if ahead else "--ff-only"
        command = shlex.join(["git", "merge", how, "--autostash", upstream])
        try:
            await self._steps.run(command, f"Take over {count(behind, 'commit')}")
        except StepFailed:
            if conflicts := repository.conflicts:
                await self._steps.run("git merge --abort", "Leave everything as it was")
                raise StepFailed(
                    f"{', '.join(conflicts)} was changed here and in {upstream}; nothing was "
                    f"changed. Resolve it with `{command}`."
                ) from None
            raise
        return [f"took over {count(behind, 'commit')} of {upstream}"]

    async def merge(self, wanted: str) -> str:
        """Merge a branch into the current one; from a worktree, its branch into the main folder."""
        repository = self._repository
        branch, folder = repository.branch, self._folder
        source = wanted
        if not source and repository.main_folder and not self._is_main():
            source, folder = branch, repository.main_folder
            if repository.changed:
                raise UsageError(f"{self._folder} has uncommitted changes; /commit them first.")
        if not source:
            raise UsageError("Name the branch to merge: /merge BRANCH.")
        there = Repository(folder)
        if not there.has(source):
            raise UsageError(f"There is no branch {source}; list them with `git branch -a`.")
        git = ["git", *(["-C", folder] if folder != self._folder else [])]
        command = shlex.join([*git, "merge", "--no-edit", source])
        before = there.commit
        try:
            await self._steps.run(command, f"Merge {source} into {there.branch}")
        except StepFailed:
            if conflicts := there.conflicts:
                await self._steps.run(shlex.join([*git, "merge", "--abort"]), "Take the merge back")
                raise StepFailed(
                    f"{', '.join(conflicts)} was changed in {source} and in {there.branch}; the "
                    "merge was taken back. Resolve it by hand, or ask the agent to."
                ) from None
            raise
        if there.commit == before:
            return f"{there.branch} has all of {source} already."
        return f"Merged {source} into {there.branch} ({there.commit})."

    async def switch_branch(self, wanted: str) -> str:
        """List the branches; or switch to one, which is made if it does not exist."""
        repository = self._repository
        if not wanted:
            return repository.list_branches() or "There is no branch yet."
        if repository.has(f"refs/heads/{wanted}") or repository.has_remote_branch(wanted):
            await self._steps.run(shlex.join(["git", "switch", "-q", wanted]), "Switch the branch")
            return f"Switched to {wanted}."
        if not repository.accepts_branch(wanted):
            raise UsageError(f"{wanted!r} is not a valid name for a branch; choose another.")
        await self._steps.run(shlex.join(["git", "switch", "-q", "-c", wanted]), "Make a branch")
        return f"Made the branch {wanted} and switched to it."

    def _is_main(self) -> bool:
        main, here = Repository(self._repository.main_folder), self._repository
        return main.branch == here.branch

    async def create_pull_request(self, hint: str, *, draft: bool = False) -> str:
        """Commit, push and propose the work, on a branch of its own."""
        repository = self._repository
        done, base = await self._prepare(hint)
        branch, remote = self._require_branch()
        if not repository.count_ahead(f"{remote}/{base}"):
            raise UsageError(
                f"{branch} has no commit that {base} lacks; there is nothing to propose."
            )
        pushed = await self._push(branch, remote)
        done.append(f"Pushed {branch} to {remote}.")
        if not self._can_reach(CREATE_TOOL):
            return "\n".join((*done, self._tell_address(pushed, base, branch)))
        text = await self._write_proposal(base, remote, hint)
        created = await self._create(text, base, branch, draft=draft)
        kind = "draft pull request" if draft else "pull request"
        return "\n".join((*done, f"Opened a {kind}: {find_address(created) or created}"))

    def _can_reach(self, tool: str) -> bool:
        """Return True if an MCP server has a tool for pull requests, or else `gh` is there."""
        return self._find_tool(tool) is not None or bool(shutil.which("gh", path=self._path))

    def _find_tool(self, tool: str) -> str | None:
        return self._steps.find_tool(tool) if self._repository.forge is not None else None

    async def _write_proposal(self, base: str, remote: str, hint: str) -> Text:
        proposal = await asyncio.to_thread(self._repository.read_proposal, f"{remote}/{base}")
        return await self._author.write_proposal(proposal, hint)

    async def update_pull_request(self, hint: str) -> str:
        """Commit and push what is new, and write title and description again."""
        repository = self._repository
        branch, remote = self._require_branch()
        base = repository.default_branch
        if branch == base:
            raise UsageError(f"{branch} has no pull request; open one with /create-pr.")
        done = [await self.commit(hint)] if repository.changed else []
        pushed = await self._push(branch, remote)
        done.append(f"Pushed {branch} to {remote}.")
        if not self._can_reach(UPDATE_TOOL):
            return "\n".join((*done, self._tell_address(pushed, base, branch)))
        answer = await self._update(branch, lambda: self._write_proposal(base, remote, hint))
        return "\n".join((*done, f"Updated the pull request: {find_address(answer) or branch}"))

    async def _update(self, branch: str, write: Callable[[], Awaitable[Text]]) -> str:
        """Write title and description again, with GitHub's MCP server or `gh`."""
        forge, tool = self._repository.forge, self._find_tool(UPDATE_TOOL)
        if tool is None or forge is None:
            text = await write()
            edit = ["gh", "pr", "edit", branch, "--title", text.subject, "--body", text.body]
            return await self._steps.run(shlex.join(edit), "Update the pull request")
        number = await self._find_number(forge, branch)
        text = await write()
        place: dict[str, object] = {"owner": forge.owner, "repo": forge.name, "pullNumber": number}
        answer = await self._steps.call(tool, place | {"title": text.subject, "body": text.body})
        return find_address(answer) or forge.pull_request_address(number)

    async def _find_number(self, forge: Forge, branch: str) -> int:
        """Ask the server for the open pull request of a branch. Raises `UsageError`."""
        listing = self._steps.find_tool(LIST_TOOL)
        if listing is None:
            raise UsageError(
                f"The MCP server has no tool {LIST_TOOL} to find the pull request with; add it "
                f"with --add-github-mcp-tool {LIST_TOOL}."
            )
        wanted = {"owner": forge.owner, "repo": forge.name, "state": "open"}
        answer = await self._steps.call(listing, wanted | {"head": f"{forge.owner}:{branch}"})
        number = read_number(answer, branch)
        if number is None:
            raise UsageError(f"{branch} has no open pull request; open one with /create-pr.")
        return number

    async def _prepare(self, hint: str) -> tuple[list[str], str]:
        """Leave the default branch, and commit what is not committed."""
        repository, done = self._repository, []
        if not repository.remote:
            raise UsageError("The repository has no remote; add one with `git remote add`.")
        base = repository.default_branch
        if not base:
            raise UsageError(
                f"The default branch of {repository.remote} is not known; run "
                f"`git remote set-head {repository.remote} --auto`."
            )
        if repository.branch in ("", base):
            name = await self._name_branch(base, hint)
            await self._steps.run(shlex.join(["git", "switch", "-q", "-c", name]), "Make a branch")
            done.append(f"Made the branch {name}.")
        if repository.changed:
            done.append(await self.commit(hint))
        return done, base

    async def _name_branch(self, base: str, hint: str) -> str:
        repository = self._repository
        changes = await asyncio.to_thread(repository.read_changes)
        if not changes:
            changes = await asyncio.to_thread(
                repository.read_proposal, f"{repository.remote}/{base}"
            )
        if self._names_branches:
            name = wanted = await self._author.write_branch(changes, hint)
        else:
            name = wanted = read_branch(hint or " ".join(repository.changed[:1]))
        number = 1
        while not repository.accepts_branch(name):
            number += 1
            name = f"{wanted}-{number}"
        return name

    async def _push(self, branch: str, remote: str) -> str:
        options = [] if self._repository.upstream else ["-u"]
        command = shlex.join(["git", "push", *options, remote, branch])
        return await self._steps.run(command, f"Push {branch}")

    async def _create(self, text: Text, base: str, branch: str, *, draft: bool) -> str:
        """Open a pull request with GitHub's MCP server or `gh`."""
        forge, tool = self._repository.forge, self._find_tool(CREATE_TOOL)
        if tool is not None and forge is not None:
            arguments: dict[str, object] = {
                "owner": forge.owner,
                "repo": forge.name,
                "title": text.subject,
                "body": text.body,
                "head": branch,
                "base": base,
                "draft": draft,
            }
            return await self._steps.call(tool, arguments)
        command = ["gh", "pr", "create", "--base", base, "--head", branch]
        command += ["--title", text.subject, "--body", text.body, *(["--draft"] if draft else [])]
        return await self._steps.run(shlex.join(command), "Open a pull request")

    def _tell_address(self, pushed: str, base: str, branch: str) -> str:
        """Return where a person opens the pull request: what the server said, or what is usual."""
        forge = self._repository.forge
        offered = re.search(r"https?://\S+", pushed)
        address = offered[0] if offered else forge and forge.propose_address(base, branch)
        if not address:
            return "Neither `gh` nor GitHub's MCP server is there to open a pull request."
        return f"Open the pull request at {address}"

    def _require_branch(self) -> tuple[str, str]:
        branch, remote = self._repository.branch, self._repository.remote
        if not branch:
            raise UsageError("HEAD is detached; switch to a branch first.")
        if not remote:
            raise UsageError("The repository has no remote; add one with `git remote add`.")
        return branch, remote


class _Head(msgspec.Struct):
    ref: str = ""


class _PullRequest(msgspec.Struct):
    number: int
    head: _Head


def read_number(answer: str, branch: str) -> int | None:
    """Return the number of a branch's pull request in a server's list; None if it is not there."""
    try:
        listed = msgspec.json.decode(answer, type=list[_PullRequest])
    except msgspec.DecodeError:
        return None  # a ValidationError too: nothing in it is a pull request of ours
    return next((request.number for request in listed if request.head.ref == branch), None)


def message_options(text: Text) -> list[str]:
    return ["-m", text.subject, *(["-m", text.body] if text.body else [])]


WORDS: dict[str, Callable[[Words, str], Awaitable[str]]] = {
    "branch": Words.switch_branch,
    "commit": Words.commit,
    "sync": Words.sync,
    "merge": Words.merge,
    "create-pr": Words.create_pull_request,
    "create-draft-pr": lambda words, hint: words.create_pull_request(hint, draft=True),
    "update-pr": Words.update_pull_request,
}
