"""The slash commands that commit, push, merge and propose; `publish` carries them out."""

from typing import TYPE_CHECKING

from trimtab.loop.side_calls import Writer
from trimtab.publish.words import WORDS, Words

if TYPE_CHECKING:
    from trimtab.commands.table import Handler, Invocation


def publishes(word: str) -> "Handler":
    """Return the handler of a word that commits, pushes or proposes."""

    async def handle(invocation: "Invocation") -> str:
        controls = invocation.live.controls

        async def find_writer() -> Writer | None:
            model = await controls.find_role_model("title")
            if model is None:
                return None
            return Writer(provider=model.provider, model=model.model, price=model.price)

        path = controls.setup.workspace.child_env.get("PATH", "")
        names = controls.is_enabled("aiGenerateBranchNames.enabled")
        words = Words(invocation.run, controls.options.cwd, find_writer, path, names_branches=names)
        return await WORDS[word](words, invocation.arguments)

    return handle
